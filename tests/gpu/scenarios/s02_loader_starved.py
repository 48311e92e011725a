"""S02: two workers, each batch costs a worker 6 tc of CPU; batches come in pairs.

A step costs 3 tc. Fix A: 8 workers. Fix B: 4 workers, which must still say DATA (1.5 tc,
a third of the step)."""

import harness


def main():
    job = harness.Job("S02", "loader_starved", fixes=("none", "A", "B"), steps=80)
    trainer = harness.Trainer(job)
    per_batch_ms = 6.0 * trainer.tc_ms
    if job.twin:
        trainer.add_ballast(1.5 * per_batch_ms)
    data = harness.ImageSet(trainer.batch * (job.total_steps() + 2), trainer.side,
                            harness.Burn(per_batch_ms / trainer.batch), job.args.seed)
    workers = {"none": 2, "A": 8, "B": 4}[job.fix]
    meter, loss = harness.train(job, trainer,
                                harness.loader(job, data, trainer.batch, num_workers=workers))
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="DATA", forbid=["num-workers"])
    else:
        # Pairs make the median useless here: the mean step is what counts.
        mean = sum(meter.step_ms) / len(meter.step_ms)
        expect = harness.expected(
            ["DATA"], ["DATA_CPU", "DATA_QUEUED", "DATA_IPC"], ["LIMITER_WORKERS"],
            share=harness.idle_share(trainer.tc_ms, mean), accept=["num-workers"],
            forbid=["prefetch-factor", "pin-non-blocking", "larger-batch"],
            min_workers=6, max_workers=16)
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
