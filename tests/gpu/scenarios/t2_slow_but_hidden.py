"""T2, a trap: loading costs five device steps a batch, but 8 workers hide all of it.

Fix A: 12 workers, which must change nothing. Fix B: 4 workers, where it becomes real DATA
(1.25 tc a step). The twin's steps are so long that four workers are enough too."""

import harness


def main():
    job = harness.Job("T2", "slow_but_hidden", fixes=("none", "A", "B"), steps=80)
    trainer = harness.Trainer(job)
    cost_ms = 5.0 * trainer.tc_ms
    if job.twin:
        trainer.add_ballast(3.0 * trainer.tc_ms)
    data = harness.ImageSet(trainer.batch * (job.total_steps() + 2), trainer.side,
                            harness.Burn(cost_ms / trainer.batch), job.args.seed)
    workers = {"none": 8, "A": 12, "B": 4}[job.fix]
    meter, loss = harness.train(job, trainer,
                                harness.loader(job, data, trainer.batch, num_workers=workers))
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.fix == "B" and not job.twin:
        expect = harness.expected(["DATA"], ["DATA_CPU", "DATA_QUEUED"], ["LIMITER_WORKERS"],
                                  share=harness.idle_share(trainer.tc_ms, mean),
                                  accept=["num-workers"], forbid=["prefetch-factor"])
    else:
        expect = harness.device_bound(gone="DATA", forbid=["num-workers", "prefetch-factor"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
