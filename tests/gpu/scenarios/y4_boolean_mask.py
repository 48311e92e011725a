"""Y4: a boolean mask picks hard samples after each step; its size must reach the host first.

Host work of 0.6 tc follows that could have been hidden. Fix A: a sum under the mask, whose
shape the host knows."""

import torch

import harness


def main():
    job = harness.Job("Y4", "boolean_mask")
    trainer = harness.Trainer(job, host_limit=0.35)
    batch = trainer.random_batch()
    scores = torch.randn(4096, device=job.device)
    work_ms = 0.6 * trainer.tc_ms
    if job.twin:
        trainer.add_ballast(20.0 * (work_ms + trainer.tl_ms))
    meter = job.meter()
    loss, hard = None, None
    while True:
        loss = trainer.step(*batch)
        moved = scores + loss
        if job.fix == "none":
            hard = moved[moved > 0.5]
        else:
            hard = torch.where(moved > 0.5, moved, 0.0)
        harness.burn(work_ms)
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    job.measured.update(hard=int(hard.numel()))
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="SYNC")
    else:
        expect = harness.expected(
            ["SYNC"], ["SYNC_IMPLICIT", "SYNC_SCALAR"],
            share=harness.idle_share(trainer.tc_ms, mean),
            accept=["implicit-sync", "item", "remove-sync"],
            forbid=["num-workers", "cuda-graph", "larger-batch"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
