"""H3: a hook in the backward pass runs Python for 2 tc (statistics of gradients).

Fix A: only every 20th step."""

import harness


class Statistics:
    def __init__(self, milliseconds, every):
        self.milliseconds = milliseconds
        self.every = every
        self.calls = 0

    def __call__(self, *_):
        self.calls += 1
        if self.calls % self.every == 0:
            harness.burn(self.milliseconds)


def main():
    job = harness.Job("H3", "python_in_backward")
    trainer = harness.Trainer(job)
    batch = trainer.random_batch()
    work_ms = 2.0 * trainer.tc_ms
    if job.twin:
        trainer.add_ballast(4.0 * (work_ms + trainer.tl_ms))
    trainer.model.head.register_full_backward_hook(
        Statistics(work_ms, 20 if job.fix == "A" else 1))
    meter = job.meter()
    loss = None
    while True:
        loss = trainer.step(*batch)
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="HOST")
    else:
        expect = harness.expected(
            ["HOST"], ["HOST_BACKWARD"], share=harness.idle_share(trainer.tc_ms, mean),
            accept=["host-code"],
            forbid=["num-workers", "larger-batch", "item", "synchronize", "remove-sync"],
            forbid_first=["cuda-graph"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
