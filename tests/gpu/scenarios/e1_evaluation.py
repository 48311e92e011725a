"""E1: every 25 steps an evaluation over a DataLoader, whose samples cost 1.5 tc a batch.

Fix A: every 1000 steps."""

import torch

import harness


def evaluate(job, trainer, batches):
    trainer.model.eval()
    with torch.no_grad():
        for images, labels in batches:
            x = images.to(job.device, trainer.dtype).mul_(1 / 255)
            x = x.contiguous(memory_format=torch.channels_last)
            found = trainer.model(torch.nn.functional.interpolate(
                x, size=(trainer.grown, trainer.grown), mode="nearest"))
            (found.argmax(1) == labels.to(job.device)).sum().item()
    trainer.model.train()


def main():
    job = harness.Job("E1", "evaluation", steps=130)
    trainer = harness.Trainer(job)
    every = 5 if job.tiny else 25
    passes = 2 if job.tiny else 20
    if job.twin:
        trainer.add_ballast(3.0 * passes * (1.5 * trainer.tc_ms + trainer.tl_ms) / every)
    cost_ms = 0.05 if job.twin else 1.5 * trainer.tc_ms / trainer.batch
    held_out = harness.loader(job, harness.ImageSet(trainer.batch * passes, trainer.side,
                                                    harness.Burn(cost_ms)), trainer.batch)
    data = harness.ImageSet(trainer.batch * (job.total_steps() + 2), trainer.side)
    training = harness.loader(job, data, trainer.batch, num_workers=4)
    meter = job.meter()
    loss, number = None, 0
    for images, labels in training:
        loss = trainer.step(images.to(job.device, non_blocking=True),
                            labels.to(job.device, non_blocking=True))
        number += 1
        if number % (1000 if job.fix == "A" else every) == 0:
            evaluate(job, trainer, held_out)
        if not meter.go_on():
            break
    meter.stop()
    p50 = harness.percentile(meter.step_ms, 0.5)
    mean = sum(meter.step_ms) / len(meter.step_ms)
    job.measured.update(stall_ms=(mean - p50) * every)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="PERIODIC")
    else:
        expect = harness.expected(
            ["PERIODIC"], ["HOST_EVALUATION"], share=1.0 - p50 / mean,
            accept=["evaluation", "num-workers"], forbid=["larger-batch", "async-checkpoint"],
            period_steps=every, share_is_idle=False, or_verdicts=["DATA"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
