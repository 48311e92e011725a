"""X1: a batch of 300 small tensors (16 KB each) copied one by one, blocking.

Fix A: one tensor, one copy."""

import torch

import harness


def main():
    job = harness.Job("X1", "many_small_copies")
    trainer = harness.Trainer(job)
    images, labels = trainer.random_batch("cpu")
    labels = labels.to(job.device)
    side_data = [torch.randn(1 << (4 if job.tiny else 12)) for _ in range(300)]
    together = torch.stack(side_data)
    on_device = images.to(job.device)

    def copies():
        if job.fix == "A":
            return [together.to(job.device)]
        return [x.to(job.device) for x in side_data]

    cost_ms = job.calibrated("X1 " + job.fix, lambda: {"ms": job.host_ms(copies)})["ms"]
    if job.twin:
        trainer.add_ballast(20.0 * (cost_ms + trainer.tl_ms))
    meter = job.meter()
    loss = None
    while True:
        copies()
        loss = trainer.step(on_device, labels)
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    job.measured.update(copies_ms=cost_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="TRANSFER")
    else:
        expect = harness.expected(
            ["TRANSFER"], ["XFER_SMALL", "XFER_PAGEABLE", "BUSY_COPY_EXPOSED"],
            share=harness.idle_share(trainer.tc_ms, mean),
            accept=["small-copies", "pin-non-blocking"], forbid=["num-workers", "larger-batch"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
