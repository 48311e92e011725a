"""H2: gc.collect() after every step over a large heap, about 2 tc each.

Fix A: not called (the objects stay)."""

import gc
import time

import harness


def main():
    job = harness.Job("H2", "gc_each_step", steps=80)
    trainer = harness.Trainer(job)
    batch = trainer.random_batch()
    gc.disable()  # only the calls below count

    def find_size():
        heap, cost_ms = [], 0.0
        while cost_ms < 2.0 * trainer.tc_ms and len(heap) < 20_000_000:
            heap.extend([i] for i in range(100_000))
            begin = time.perf_counter()
            gc.collect()
            cost_ms = (time.perf_counter() - begin) * 1e3
        return {"objects": len(heap), "ms": cost_ms}

    found = job.calibrated("H2", find_size)
    cost_ms = found["ms"]
    heap = [[i] for i in range(found["objects"])]
    if job.twin:
        trainer.add_ballast(2.5 * (cost_ms + trainer.tl_ms))
    meter = job.meter()
    loss = None
    while True:
        loss = trainer.step(*batch)
        if job.fix == "none":
            gc.collect()
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    job.measured.update(gc_ms=cost_ms, objects=len(heap))
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="HOST")
    else:
        expect = harness.expected(
            ["HOST"], ["HOST_GC"], share=harness.idle_share(trainer.tc_ms, mean),
            accept=["gc", "host-code"], forbid=["num-workers", "larger-batch", "cuda-graph"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
