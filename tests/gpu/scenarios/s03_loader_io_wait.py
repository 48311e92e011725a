"""S03: four workers that wait for a slow server: 32 tc a batch, no CPU.

A step costs 8 tc. Fix A: 40 workers (waits overlap, also beyond the number of cores).
Fix B: samples read into memory beforehand."""

import harness
import slow_store


def main():
    job = harness.Job("S03", "loader_io_wait", fixes=("none", "A", "B"), steps=50)
    store = slow_store.SlowStore()
    trainer = harness.Trainer(job)
    per_batch_ms = 32.0 * trainer.tc_ms
    if job.twin:
        trainer.add_ballast(1.5 * per_batch_ms / 4)
    cost = None
    if job.fix != "B":
        cost = slow_store.SlowRead(store, per_batch_ms / trainer.batch)
    data = harness.ImageSet(trainer.batch * (job.total_steps() + 2), trainer.side, cost,
                            job.args.seed)
    workers = 40 if job.fix == "A" else 4
    meter, loss = harness.train(job, trainer,
                                harness.loader(job, data, trainer.batch, num_workers=workers))
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "B":
        expect = harness.device_bound(gone="DATA")
    elif job.fix == "A":
        expect = harness.expected(["COMPUTE"] if trainer.tc_ms > 0.9 * mean else ["DATA"])
    else:
        expect = harness.expected(
            ["DATA"], ["DATA_REMOTE", "DATA_QUEUED"], ["LIMITER_REMOTE", "LIMITER_WORKERS"],
            share=harness.idle_share(trainer.tc_ms, mean),
            accept=["num-workers", "cache"],
            forbid=["cheaper-prepare"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)
    store.close()


if __name__ == "__main__":
    main()
