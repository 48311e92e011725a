"""X2: large activations go to ordinary CPU memory after each step (.cpu()), for about 0.7 tc.

Fix A: every 25th step only."""

import torch

import harness


def main():
    job = harness.Job("X2", "copy_back", steps=100)
    trainer = harness.Trainer(job, host_limit=0.35)
    batch = trainer.random_batch()

    def find_size():
        one = torch.zeros(1 << 22, device=job.device)  # 16 MB
        ms = job.host_ms(one.cpu, 5)
        return {"elements": int((1 << 22) * max(0.25, min(64.0, 0.7 * trainer.tc_ms / ms)))}

    elements = 1024 if job.tiny else job.calibrated("X2", find_size)["elements"]
    activations = torch.zeros(elements, device=job.device)
    if job.twin:
        trainer.add_ballast(20.0 * (trainer.tc_ms + trainer.tl_ms))
    meter = job.meter()
    loss, number, kept = None, 0, None
    while True:
        loss = trainer.step(*batch)
        if job.fix == "none" or number % 25 == 0:
            kept = activations.cpu()
        number += 1
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    job.measured.update(bytes=kept.numel() * 4)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="TRANSFER")
    else:
        expect = harness.expected(
            ["TRANSFER"], ["XFER_PAGEABLE", "BUSY_COPY_EXPOSED"],
            share=harness.idle_share(trainer.tc_ms, mean), tolerance=0.15,
            accept=["copy-back", "pin-non-blocking"],
            forbid=["num-workers", "larger-batch", "uint8", "prefetch-stream"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
