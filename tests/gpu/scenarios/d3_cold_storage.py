"""D3: two workers read scattered 16 KB blocks that are never in the page cache: 6 tc a batch.

Fix A: the same blocks from memory."""

import os
import random
import tempfile
import time

import torch

import harness

BLOCK = 16 << 10


class ColdBlocks:
    """A per-sample cost: `count` reads from the disk itself."""

    def __init__(self, path, size, count):
        self.path = path
        self.blocks = size // BLOCK
        self.count = count
        self.file = None
        self.owner = 0

    def __call__(self, index):
        if self.owner != os.getpid():
            self.file = os.open(self.path, os.O_RDONLY)
            os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_RANDOM)
            self.owner = os.getpid()
        generator = random.Random(index)
        for _ in range(self.count):
            offset = generator.randrange(self.blocks) * BLOCK
            os.pread(self.file, BLOCK, offset)
            os.posix_fadvise(self.file, offset, BLOCK, os.POSIX_FADV_DONTNEED)


def main():
    job = harness.Job("D3", "cold_storage", steps=60)
    trainer = harness.Trainer(job)
    size = (8 << 20) if job.tiny else (512 << 20)
    # Beside the program's output, not in /tmp, which may be memory.
    handle, path = tempfile.mkstemp(prefix="cold_blocks", dir=os.environ.get("SCENARIO_DISK", "."))
    chunk = random.Random(job.args.seed).randbytes(8 << 20)
    for _ in range(size // len(chunk)):
        os.write(handle, chunk)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)
    probe = ColdBlocks(path, size, 20 if job.tiny else 2000)
    probe(0)
    begin = time.perf_counter()
    probe(1)
    read_ms = (time.perf_counter() - begin) * 1e3 / probe.count
    per_sample = max(1, round(6.0 * trainer.tc_ms / trainer.batch / read_ms))
    if job.tiny:
        per_sample = 1
    cost = None if job.fix == "A" else ColdBlocks(path, size, per_sample)
    if job.twin:
        trainer.add_ballast(1.5 * per_sample * trainer.batch * read_ms)
    data = harness.ImageSet(trainer.batch * (job.total_steps() + 2), trainer.side, cost)
    meter, loss = harness.train(job, trainer,
                                harness.loader(job, data, trainer.batch, num_workers=2))
    os.unlink(path)
    mean = sum(meter.step_ms) / len(meter.step_ms)
    job.measured.update(read_ms=read_ms, reads_per_sample=per_sample)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="DATA")
    else:
        expect = harness.expected(
            ["DATA"], ["DATA_STORAGE", "DATA_QUEUED"], ["LIMITER_STORAGE", "LIMITER_WORKERS"],
            share=harness.idle_share(trainer.tc_ms, mean),
            accept=["cache", "num-workers"],
            forbid=["cheaper-prepare", "larger-batch"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
