"""T4, a trap: the first batch takes seconds (a cache is filled), then all is well.

Over the whole run the device idles more than half of the time. Fix A is no fix but the
check: twice the steps, the same start-up seconds. The twin starts at once and has long steps."""

import time

import harness


class CacheFill:
    """Each worker's first sample waits."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self, index):
        if self.seconds:
            time.sleep(self.seconds)
            self.seconds = 0


def main():
    job = harness.Job("T4", "slow_start_only", steps=160)
    trainer = harness.Trainer(job)
    seconds = 0.2 if job.tiny else 4.0
    if job.twin:
        seconds = 0.05
        trainer.add_ballast(4.0 * trainer.tc_ms)
    steps = job.args.steps * (2 if job.fix == "A" else 1)
    meter = job.meter(steps=steps)
    data = harness.ImageSet(trainer.batch * (meter.total() + 2), trainer.side, CacheFill(seconds),
                            job.args.seed)
    meter, loss = harness.train(job, trainer,
                                harness.loader(job, data, trainer.batch, num_workers=4), meter)
    job.measured.update(first_batch_s=seconds)
    expect = harness.device_bound(gone="DATA", forbid=["num-workers", "prefetch-factor"])
    if not job.twin:
        expect = harness.expected(["COMPUTE", "STARTUP"], gone="DATA",
                                  forbid=["num-workers", "prefetch-factor"],
                                  startup_s_at_least=0.9 * seconds)
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
