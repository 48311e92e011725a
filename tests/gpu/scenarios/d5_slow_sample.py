"""D5: every sixteenth batch takes 40 tc, the others half a tc: delivery in order waits for it.

Eight workers would be enough on average (3 tc a batch: 0.4 tc a step). Fix A: in_order=False where
PyTorch has it, and a deeper queue."""

import inspect

import torch

import harness


class Uneven:
    def __init__(self, batch, usual_ms, slow_ms):
        self.batch = batch
        self.usual_ms = usual_ms
        self.slow_ms = slow_ms

    def __call__(self, index):
        number = index // self.batch
        harness.burn((self.slow_ms if number % 16 == 7 else self.usual_ms) / self.batch)


def main():
    job = harness.Job("D5", "slow_sample", steps=96)
    trainer = harness.Trainer(job)
    tc = trainer.tc_ms
    if job.twin:
        trainer.add_ballast(42.0 * tc)
    data = harness.ImageSet(trainer.batch * (job.total_steps() + 30), trainer.side,
                            Uneven(trainer.batch, 0.5 * tc, 40.0 * tc), job.args.seed)
    options = {"num_workers": 8}
    if job.fix == "A":
        options["prefetch_factor"] = 6
        if "in_order" in inspect.signature(torch.utils.data.DataLoader.__init__).parameters:
            options["in_order"] = False
    meter, loss = harness.train(job, trainer, harness.loader(job, data, trainer.batch, **options))
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.expected(["COMPUTE", "DATA"] if job.fix == "A" else ["COMPUTE"])
    else:
        expect = harness.expected(
            ["DATA"], ["DATA_CPU", "DATA_QUEUED"], ["LIMITER_ORDERING"],
            share=harness.idle_share(tc, mean), tolerance=0.15,
            accept=["in-order", "prefetch-factor", "num-workers"],
            forbid=["cache", "larger-batch"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
