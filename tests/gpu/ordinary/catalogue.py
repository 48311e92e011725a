"""The ordinary jobs and what an expert says of each before it runs on a GPU.

Standard library only. In order: the newest first, so that a call with a time budget runs them.
`verdicts`: one of them must be the report's; `accept`: one of them must be the first advice (empty:
any). What is written here is not changed to fit a result: where it was wrong, docs/accuracy.md says
so. `seen` marks jobs that had been recorded before they were written down: their
expectation is no prediction."""

from typing import NamedTuple

from suite.catalogue import Scenario


class Ordinary(NamedTuple):
    key: str
    file: str
    verdicts: tuple
    accept: tuple = ()
    forbid: tuple = ()          # not even as later advice
    forbid_first: tuple = ()
    tolerated: tuple = ()       # verdicts that are noted
    needs: tuple = ()           # modules beside PyTorch and NumPy
    seen: bool = False


FASTER_STEP = ("cuda-graph", "larger-batch")
NO_WAIT = ("item", "implicit-sync", "remove-sync", "synchronize", "logging")
LOADER = ("num-workers", "cheaper-prepare")
COPIES = ("pin-non-blocking", "prefetch-stream", "uint8")
NO_LOADER = ("num-workers", "prefetch-factor", "persistent-workers", "own-loader")

JOBS = [
    # Device-bound, whatever their loops do beside it.
    Ordinary("large_matmuls", "whole.py", ("COMPUTE",), forbid=NO_LOADER + FASTER_STEP),
    Ordinary("isnan_every_step", "watching.py", ("COMPUTE",), forbid=NO_LOADER),
    Ordinary("item_every_step", "watching.py", ("COMPUTE",), forbid=NO_LOADER),
    Ordinary("accumulate_large", "language.py", ("COMPUTE",), forbid=NO_LOADER),
    Ordinary("activation_checkpoints", "language.py", ("COMPUTE",), forbid=NO_LOADER),
    Ordinary("scaler_and_clip_large", "language.py", ("COMPUTE",), forbid=NO_LOADER),
    Ordinary("ddp_one_rank", "language.py", ("COMPUTE",),
             forbid=NO_LOADER + ("straggler", "all-ranks")),
    Ordinary("vision_transformer", "whole.py", ("COMPUTE",), forbid=NO_LOADER),
    Ordinary("unet_ema_large", "generative.py", ("COMPUTE",), forbid=NO_LOADER),
    # Waits for data.
    Ordinary("tar_shards", "loaders.py", ("DATA",), LOADER + ("cache", "shards")),
    Ordinary("csv_rows", "loaders.py", ("DATA",), LOADER + ("cache", "batch-index")),
    Ordinary("memmap_shuffle", "loaders.py", ("DATA",), ("batch-index",) + LOADER,
             forbid_first=("pin-non-blocking", "larger-batch")),
    # More workers wait for the same lock.
    Ordinary("locked_file", "loaders.py", ("DATA",), ("cheaper-prepare", "cache", "shards"),
             forbid_first=("num-workers", "prefetch-factor")),
    Ordinary("heavy_collate", "loaders.py", ("DATA",), LOADER + ("collate",)),
    Ordinary("own_thread_waits", "loaders.py", ("DATA",), ("own-loader", "blocked-call"),
             forbid=("num-workers",)),
    Ordinary("own_process_loader", "loaders.py", ("DATA",), ("own-loader", "blocked-call"),
             forbid=("num-workers",)),
    Ordinary("workers_every_epoch", "loaders.py", ("STARTUP",), ("persistent-workers", "start-method"),
             tolerated=("DATA",)),
    Ordinary("unpinned_large", "loaders.py", ("TRANSFER", "DATA"),
             COPIES + ("ipc", "num-workers")),
    # Copies.
    Ordinary("pinned_blocking", "copies.py", ("TRANSFER",), ("prefetch-stream", "uint8"),
             forbid=NO_LOADER),
    Ordinary("float64_batches", "copies.py", ("TRANSFER",), COPIES, forbid=NO_LOADER),
    Ordinary("dictionary_of_tensors", "copies.py", ("TRANSFER",), ("small-copies",),
             forbid=NO_LOADER),
    Ordinary("optimizer_on_cpu", "copies.py", ("TRANSFER", "HOST"),
             COPIES + ("copy-back", "host-code", "fused-optimizer"), forbid=NO_LOADER,
             tolerated=("SYNC",)),
    # Waits that the loop asks for.
    Ordinary("phase_timing", "watching.py", ("SYNC",), NO_WAIT, forbid=NO_LOADER,
             tolerated=("HOST",)),
    Ordinary("norms_every_step", "watching.py", ("SYNC", "LAUNCH"), NO_WAIT + FASTER_STEP,
             forbid=NO_LOADER),
    # Host code and stalls.
    Ordinary("confusion_on_cpu", "watching.py", ("HOST",), ("host-code", "logging"),
             forbid=NO_LOADER),
    Ordinary("ranking_every_20", "watching.py", ("PERIODIC",),
             ("evaluation", "host-code", "logging"), forbid=NO_LOADER + ("async-checkpoint",),
             tolerated=("HOST",)),
    Ordinary("save_every_20", "watching.py", ("PERIODIC",), ("async-checkpoint",),
             forbid=NO_LOADER),
    # Many small kernels.
    Ordinary("unet_ema", "generative.py", ("LAUNCH",), FASTER_STEP + ("fused-optimizer",),
             forbid=NO_LOADER),
    Ordinary("clip_each_parameter", "language.py", ("LAUNCH",), FASTER_STEP, forbid=NO_LOADER),
    Ordinary("message_passing", "small_steps.py", ("LAUNCH",), FASTER_STEP, forbid=NO_LOADER),
    Ordinary("masked_words", "language.py", ("LAUNCH",), FASTER_STEP + NO_WAIT,
             forbid=NO_LOADER, tolerated=("SYNC",)),
    Ordinary("augment_image_by_image", "small_steps.py", ("LAUNCH",),
             FASTER_STEP + ("host-code",), forbid=NO_LOADER, tolerated=("HOST",)),
    Ordinary("lbfgs", "small_steps.py", ("LAUNCH", "SYNC"), FASTER_STEP + NO_WAIT + ("host-code",),
             forbid=NO_LOADER, tolerated=("HOST",)),
    Ordinary("sparse_embeddings", "small_steps.py", ("LAUNCH", "SYNC"),
             FASTER_STEP + NO_WAIT + ("host-code",), forbid=NO_LOADER, tolerated=("HOST",)),
    # Compiles first, as long as the machine takes.
    Ordinary("compiled_default", "whole.py", ("COMPUTE",), forbid=NO_LOADER,
             tolerated=("STARTUP", "COMPILE")),
    # Recorded before this list was written.
    Ordinary("own_thread_loader", "loaders.py", ("DATA", "HOST"), ("own-loader", "blocked-thread"),
             seen=True),
    Ordinary("metrics_every_step", "watching.py", ("LAUNCH", "SYNC"), NO_WAIT + FASTER_STEP,
             seen=True),
    Ordinary("numpy_augment_main", "whole.py", ("HOST",), ("host-code",), seen=True),
    Ordinary("gan", "generative.py", ("LAUNCH",), FASTER_STEP, seen=True),
    Ordinary("gpt2", "language.py", ("LAUNCH", "COMPUTE"), seen=True),
    Ordinary("gpt2_bf16_accum", "language.py", ("LAUNCH",), FASTER_STEP, seen=True),
    Ordinary("lm_eval", "language.py", ("LAUNCH", "COMPUTE"), seen=True),
    Ordinary("tiny_lm", "language.py", ("LAUNCH",), FASTER_STEP, seen=True),
    Ordinary("lstm_loop", "small_steps.py", ("LAUNCH",), FASTER_STEP, seen=True),
    Ordinary("rl_loop", "small_steps.py", ("LAUNCH", "SYNC"), NO_WAIT + FASTER_STEP, seen=True),
    Ordinary("tiny_lm_compiled", "language.py", ("LAUNCH", "HOST"), FASTER_STEP, seen=True),
    Ordinary("tiny_lm_cudagraphs", "language.py", ("HOST", "LAUNCH", "COMPILE"), seen=True),
    Ordinary("jpeg_w0", "loaders.py", ("DATA",), LOADER, needs=("torchvision", "PIL"), seen=True),
    Ordinary("jpeg_w4", "loaders.py", ("DATA",), LOADER, needs=("torchvision", "PIL"), seen=True),
    Ordinary("hf_trainer", "whole.py", ("LAUNCH",), FASTER_STEP, needs=("transformers",),
             seen=True),
    Ordinary("lightning", "whole.py", ("HOST", "LAUNCH", "DATA"), needs=("pytorch_lightning",),
             seen=True),
    # Of an earlier set, in which they were not run.
    Ordinary("pageable_big", "copies.py", ("TRANSFER",), COPIES, forbid=NO_LOADER),
    Ordinary("empty_cache_each", "whole.py", ("HOST", "ALLOC"), ("gc", "alloc"),
             forbid=NO_LOADER),
    Ordinary("tiny_lm_noscaler", "language.py", ("LAUNCH",), FASTER_STEP, forbid=NO_LOADER),
    Ordinary("geometric", "small_steps.py", ("LAUNCH",), FASTER_STEP, forbid=NO_LOADER,
             needs=("torch_geometric",)),
    Ordinary("timm_synth", "whole.py", ("COMPUTE",), forbid=NO_LOADER, needs=("timm",)),
]

BY_KEY = {job.key: job for job in JOBS}


def expectation(key):
    """As harness.expected() of the scenarios gives it: the suite judges both alike."""
    job = BY_KEY[key]
    return {"verdicts": list(job.verdicts), "or_verdicts": list(job.tolerated), "leaves": [],
            "limiters": [], "share": None, "accept": list(job.accept),
            "forbid": list(job.forbid), "forbid_first": list(job.forbid_first), "gone": None,
            "seen": job.seen}


def scenarios():
    return [Scenario(job.key, job.file, fixes=(), twin=False, folder="ordinary",
                     arguments=(job.key,), calibrates=False, needs=job.needs) for job in JOBS]
