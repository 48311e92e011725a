"""A1: torch.cuda.empty_cache() after every step: all memory is given back and asked for again.

Fix A: not called."""

import torch

import harness


def main():
    job = harness.Job("A1", "empty_cache")
    trainer = harness.Trainer(job)
    batch = trainer.random_batch()

    def step():
        loss = trainer.step(*batch)
        if job.cuda and job.fix == "none":
            torch.cuda.empty_cache()
        return loss

    cost_ms = job.calibrated("A1 " + job.fix, lambda: {
        "ms": job.host_ms(lambda: (step(), job.synchronize()), 5) - trainer.tc_ms})["ms"]
    if job.twin:
        trainer.add_ballast(20.0 * max(cost_ms, 1.0))
    meter = job.meter()
    loss = None
    while True:
        loss = step()
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="ALLOC")
    else:
        # cudaFree waits for the device first, so run-ahead is lost as well.
        expect = harness.expected(
            ["ALLOC"], ["ALLOC_DEVICE"], share=harness.idle_share(trainer.tc_ms, mean),
            accept=["alloc"], forbid=["num-workers", "larger-batch"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
