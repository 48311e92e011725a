"""Y2: torch.cuda.synchronize() each step, then host work of 0.6 tc that could have been hidden.

Fix A: no synchronisation; the same host work then overlaps the device."""

import harness


def main():
    job = harness.Job("Y2", "synchronize_then_work")
    trainer = harness.Trainer(job, host_limit=0.35)
    batch = trainer.random_batch()
    work_ms = 0.6 * trainer.tc_ms
    if job.twin:
        trainer.add_ballast(20.0 * (work_ms + trainer.tl_ms))
    meter = job.meter()
    loss = None
    while True:
        loss = trainer.step(*batch)
        if job.fix == "none":
            job.synchronize()
        harness.burn(work_ms)
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="SYNC")
    else:
        expect = harness.expected(
            ["SYNC"], ["SYNC_EXPLICIT"], share=harness.idle_share(trainer.tc_ms, mean),
            accept=["item", "synchronize", "remove-sync", "implicit-sync"], forbid=["num-workers", "cuda-graph"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
