# What is patched, by the module that defines it.
_install(
    {
        "torch.utils.data.dataloader": _patch_dataloader,
        "torchdata.stateful_dataloader.worker": _wrap_worker_loops,
        "torchdata.stateful_dataloader.stateful_dataloader": _patch_stateful,
        "torch.optim.optimizer": _patch_optimizer,
    }
)
