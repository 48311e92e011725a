"""D4: eight workers that may use two cores: more of them cannot help.

A batch costs 6 tc of CPU, so a step takes 3 tc or a little more. Fix A: all cores."""

import os

import harness


def main():
    job = harness.Job("D4", "two_cores", steps=60)
    trainer = harness.Trainer(job)
    per_batch_ms = 6.0 * trainer.tc_ms
    if job.twin:
        trainer.add_ballast(2.0 * per_batch_ms)
    if job.fix != "A":
        # The whole job, as in a container with two CPUs.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    data = harness.ImageSet(trainer.batch * (job.total_steps() + 2), trainer.side,
                            harness.Burn(per_batch_ms / trainer.batch), job.args.seed)
    meter, loss = harness.train(job, trainer,
                                harness.loader(job, data, trainer.batch, num_workers=8))
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="DATA")
    else:
        expect = harness.expected(
            ["DATA"], ["DATA_CONTENDED", "DATA_QUEUED", "DATA_CPU", "DATA_IPC"], ["LIMITER_CORES"],
            share=harness.idle_share(trainer.tc_ms, mean), tolerance=0.15,
            # The training process lacks the same cores: it launches slowly and is put aside.
            share_with=["HOST_", "LAUNCH_LEAF"],
            # The main process shares the two cores: which of the two starves more is open.
            accept=["cheaper-prepare", "blocked-thread"], or_verdicts=["HOST"],
            forbid=["num-workers", "prefetch-factor", "cache"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
