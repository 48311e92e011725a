"""S01: the main process prepares every batch itself, for two device steps of CPU time.

Preparation and compute overlap (launches are asynchronous), so a step costs
2 tc + tl and the device is idle for 1 - tc/step of it; adding loader time to compute
time (3 tc) would be wrong. Fix A: 8 workers."""

import harness


def main():
    job = harness.Job("S01", "loader_inline", steps=80)
    trainer = harness.Trainer(job)
    per_batch_ms = 2.0 * trainer.tc_ms
    if job.twin:
        trainer.add_ballast(2.5 * (per_batch_ms + trainer.tl_ms))
    data = harness.ImageSet(trainer.batch * (job.total_steps() + 2), trainer.side,
                            harness.Burn(per_batch_ms / trainer.batch), job.args.seed)
    workers = 8 if job.fix == "A" else 0
    meter, loss = harness.train(job, trainer,
                                harness.loader(job, data, trainer.batch, num_workers=workers))
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="DATA", forbid=["num-workers"])
    else:
        expect = harness.expected(
            ["DATA"], ["DATA_CPU"], ["LIMITER_SERIAL"],
            share=harness.idle_share(trainer.tc_ms, sum(meter.step_ms) / len(meter.step_ms)),
            accept=["num-workers"], forbid=["larger-batch", "cache"],
            forbid_first=["pin-non-blocking", "prefetch-stream"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
