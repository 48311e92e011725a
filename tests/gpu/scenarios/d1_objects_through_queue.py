"""D1: batches full of small Python objects, which are pickled and unpickled on their way.

The workers have little to do; the queue is the limit. Fix A: the same content as one
tensor."""

import gc
import pickle
import time

import torch

import harness


class Records(torch.utils.data.Dataset):
    """Whole batches: a list of dicts, or the same as a tensor."""

    def __init__(self, length, records, as_tensor):
        self.length = length
        self.content = [{"id": i, "name": "record %d" % i, "box": (i, i + 1.5, i * 2, i * 2.5)}
                        for i in range(records)]
        self.tensor = torch.tensor([r["box"] for r in self.content]) if as_tensor else None

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.content if self.tensor is None else self.tensor


def as_it_is(batch):
    """(The default would visit every object.)"""
    return batch


def main():
    job = harness.Job("D1", "objects_through_queue", steps=60)
    trainer = harness.Trainer(job)
    images, labels = trainer.random_batch()
    records, cost_ms = 1000, 0.0
    while cost_ms < 2.0 * trainer.tc_ms and records < 4_000_000:
        records *= 2
        data = Records(1, records, False)
        blob = pickle.dumps(data[0])
        begin = time.perf_counter()
        pickle.loads(blob)
        cost_ms = (time.perf_counter() - begin) * 1e3
    if job.twin:
        trainer.add_ballast(4.0 * cost_ms)
    data = Records(job.total_steps() + 2, records, job.fix == "A")
    batches = harness.loader(job, data, None, num_workers=8, drop_last=False, pin_memory=False,
                             collate_fn=as_it_is)
    # A million fresh objects set off garbage collections, which are another bottleneck (H2).
    gc.disable()
    meter = job.meter()
    loss = None
    for extra in batches:
        loss = trainer.step(images, labels)
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    job.measured.update(unpickle_ms=cost_ms, records=records)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="DATA")
    else:
        expect = harness.expected(
            ["DATA"], ["DATA_IPC", "DATA_WAKE"], ["LIMITER_IPC"],
            share=harness.idle_share(trainer.tc_ms, mean), accept=["ipc"],
            forbid=["num-workers", "prefetch-factor", "cache"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
