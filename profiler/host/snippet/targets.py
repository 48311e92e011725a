# What is patched, by the module that defines it.
_quietly(_follow_gc)
if _frames_wanted():
    _quietly(_sample_frames, sys.getprofile)
_install(
    {
        "torch.utils.data.dataloader": _patch_dataloader,
        "torchdata.stateful_dataloader.worker": _wrap_worker_loops,
        "torchdata.stateful_dataloader.stateful_dataloader": _patch_stateful,
        "torch.optim.optimizer": _patch_optimizer,
        "torch.serialization": _patch_serialization,
        "torch.autograd": _patch_autograd,
        "torch.autograd.profiler": _patch_profiler,
        "torch.cuda.graphs": _patch_cuda_graphs,
        "torch._dynamo.eval_frame": _patch_eval_frame,
        "torch._dynamo.variables.optimizer": _patch_optimizer_variable,
        "torch._dynamo.callback": _patch_dynamo_callback,
        "nvidia.dali.plugin.base_iterator": _follow_foreign("nvidia.dali", "_DaliBaseIterator"),
        "nvidia.dali.plugin.pytorch": _follow_foreign("nvidia.dali", "DALIGenericIterator"),
        "ffcv.loader.epoch_iterator": _follow_foreign("ffcv", "EpochIterator"),
        "torchdata.nodes.loader": _follow_foreign("torchdata.nodes", "LoaderIterator", "next"),
        "tensorflow.python.data.ops.iterator_ops": _follow_foreign("tf.data", "OwnedIterator"),
        "grain._src.python.data_loader": _follow_foreign("grain", "DataLoaderIterator"),
    }
)
