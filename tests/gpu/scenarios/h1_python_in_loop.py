"""H1: Python work of 2 tc between the steps, in no library call (metrics, bookkeeping).

Fix A: done every 20th step."""

import harness


def update_metrics(milliseconds):
    harness.burn(milliseconds)


def main():
    job = harness.Job("H1", "python_in_loop")
    trainer = harness.Trainer(job)
    batch = trainer.random_batch()
    work_ms = 2.0 * trainer.tc_ms
    if job.twin:
        trainer.add_ballast(2.0 * (work_ms + trainer.tl_ms))
    meter = job.meter()
    loss, number = None, 0
    while True:
        loss = trainer.step(*batch)
        number += 1
        if job.fix == "none" or number % 20 == 0:
            update_metrics(work_ms)
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="HOST")
    else:
        expect = harness.expected(
            ["HOST"], ["HOST_PYTHON", "HOST_LOGGING"],
            share=harness.idle_share(trainer.tc_ms, mean), accept=["host-code"],
            forbid=["num-workers", "larger-batch", "cuda-graph", "item", "synchronize", "remove-sync", "implicit-sync"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
