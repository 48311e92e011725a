"""H4: an optimizer that works out every parameter's rate in Python, 2 tc a step.

Fix A: PyTorch's own."""

import torch

import harness


class PerParameterRate(torch.optim.SGD):
    def __init__(self, parameters, milliseconds):
        super().__init__(parameters, lr=0.01, momentum=0.9)
        self.milliseconds = milliseconds

    def step(self, closure=None):
        count = sum(len(group["params"]) for group in self.param_groups)
        for _ in range(count):
            harness.burn(self.milliseconds / count)
        return super().step(closure)


def main():
    job = harness.Job("H4", "python_in_optimizer")
    trainer = harness.Trainer(job)
    batch = trainer.random_batch()
    work_ms = 2.0 * trainer.tc_ms
    if job.twin:
        trainer.add_ballast(4.0 * (work_ms + trainer.tl_ms))
    if job.fix == "none":
        trainer.optimizer = PerParameterRate(trainer.model.parameters(), work_ms)
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
            ["HOST"], ["HOST_OPTIMIZER"], share=harness.idle_share(trainer.tc_ms, mean),
            accept=["host-code", "fused-optimizer"],
            forbid=["num-workers", "larger-batch", "item", "synchronize", "remove-sync"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
