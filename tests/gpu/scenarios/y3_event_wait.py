"""Y3: the host waits for an event behind each step, then works 0.6 tc that could have been hidden.

Fix A: it waits for the event of the step before, so one step is always queued."""

import torch

import harness


def main():
    job = harness.Job("Y3", "event_wait")
    trainer = harness.Trainer(job, host_limit=0.35)
    batch = trainer.random_batch()
    work_ms = 0.6 * trainer.tc_ms
    if job.twin:
        trainer.add_ballast(20.0 * (work_ms + trainer.tl_ms))
    meter = job.meter()
    loss, events = None, []
    while True:
        loss = trainer.step(*batch)
        if job.cuda:
            events.append(torch.cuda.Event())
            events[-1].record()
            if job.fix == "none" or len(events) > 1:
                events.pop(0).synchronize()
        harness.burn(work_ms)
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="SYNC")
    else:
        expect = harness.expected(
            ["SYNC"], ["SYNC_EVENT"], share=harness.idle_share(trainer.tc_ms, mean),
            accept=["remove-sync", "synchronize", "implicit-sync"],
            forbid=["num-workers", "cuda-graph", "larger-batch"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
