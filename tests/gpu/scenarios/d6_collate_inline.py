"""D6: no workers, and collate_fn burns 2 tc for each batch (padding in Python).

Fix A: eight workers do it."""

import torch

import harness


class SlowCollate:
    def __init__(self, milliseconds):
        self.milliseconds = milliseconds

    def __call__(self, samples):
        harness.burn(self.milliseconds)
        return torch.utils.data.default_collate(samples)


def main():
    job = harness.Job("D6", "collate_inline")
    trainer = harness.Trainer(job)
    cost_ms = 2.0 * trainer.tc_ms
    if job.twin:
        trainer.add_ballast(4.0 * (cost_ms + trainer.tl_ms))
    data = harness.ImageSet(trainer.batch * (job.total_steps() + 2), trainer.side)
    batches = harness.loader(job, data, trainer.batch, collate_fn=SlowCollate(cost_ms),
                             num_workers=8 if job.fix == "A" else 0)
    meter, loss = harness.train(job, trainer, batches)
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="DATA")
    else:
        expect = harness.expected(
            ["DATA"], ["DATA_COLLATE"], ["LIMITER_SERIAL"],
            share=harness.idle_share(trainer.tc_ms, mean),
            accept=["collate", "num-workers"], forbid=["larger-batch", "cache", "batch-index"],
            forbid_first=["pin-non-blocking"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
