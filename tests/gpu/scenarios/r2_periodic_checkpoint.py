"""R2: every 25 steps half a gigabyte is saved, and training stands still meanwhile.

Fix A: the state is copied to pinned memory and written by a thread."""

import os
import tempfile
import threading

import torch

import harness


class Saver:
    """Copies to pinned memory, writes in the background."""

    def __init__(self, state, path):
        self.path = path
        self.state = state
        self.copy = torch.empty(state.shape, dtype=state.dtype, pin_memory=True)
        self.copied = torch.cuda.Event()
        self.thread = None

    def save(self):
        if self.thread:
            self.thread.join()
        self.copy.copy_(self.state, non_blocking=True)
        self.copied.record()
        self.thread = threading.Thread(target=self._write)
        self.thread.start()

    def _write(self):
        self.copied.synchronize()
        with open(self.path, "wb") as file:
            file.write(memoryview(self.copy.numpy()))


def main():
    job = harness.Job("R2", "periodic_checkpoint", steps=130)
    trainer = harness.Trainer(job)
    every = 5 if job.tiny else 25
    size = (1 << 16) if job.tiny or job.twin else (512 << 20)
    state = torch.ones(size // 4, device=job.device)
    handle, path = tempfile.mkstemp(prefix="checkpoint")
    os.close(handle)
    saver = Saver(state, path) if job.fix == "A" and job.cuda else None
    batch = trainer.random_batch()
    meter = job.meter()
    loss, number = None, 0
    while True:
        loss = trainer.step(*batch)
        number += 1
        if number % every == 0:
            if saver:
                saver.save()
            else:
                torch.save({"step": number, "state": state}, path)
        if not meter.go_on():
            break
    meter.stop()
    if saver and saver.thread:
        saver.thread.join()
    os.unlink(path)
    p50 = harness.percentile(meter.step_ms, 0.5)
    mean = sum(meter.step_ms) / len(meter.step_ms)
    job.measured.update(stall_ms=(mean - p50) * every)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="PERIODIC")
    else:
        expect = harness.expected(
            ["PERIODIC"], ["CKPT"], share=1.0 - p50 / mean, accept=["async-checkpoint"],
            forbid=["num-workers", "larger-batch"], period_steps=every, share_is_idle=False)
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
