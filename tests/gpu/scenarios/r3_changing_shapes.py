"""R3: cudnn.benchmark with a new input size every eighth step: each first use is a search.

Fix A: sizes padded to four. The twin has the padded sizes, and long steps."""

import torch

import harness


def main():
    job = harness.Job("R3", "changing_shapes", steps=32)
    trainer = harness.Trainer(job, batch=4 if job.tiny else 64)
    # Launching takes longer than this small batch does: without more work for the device what
    # is left after the fix would be LAUNCH.
    trainer.add_ballast(2.0 * trainer.tl_ms)
    if job.twin:
        trainer.add_ballast(10.0 * trainer.tc_ms)
    torch.backends.cudnn.benchmark = True
    job.args.max_seconds = min(job.args.max_seconds, 12.0)
    meter = job.meter(warm_up=4)
    images, labels = trainer.random_batch()
    padded = job.fix == "A" or job.twin
    if padded:
        # The four sizes are searched before the loop counts.
        for pad in range(4):
            trainer.grown = (16 if job.tiny else 232) + 8 * pad
            trainer.step(images, labels)
    loss, number = None, 0
    while True:
        pad = number // 8
        if padded:
            pad = pad % 4
        trainer.grown = (16 if job.tiny else 232) + 8 * pad
        loss = trainer.step(images, labels)
        number += 1
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    p50 = harness.percentile(meter.step_ms, 0.5)
    if padded:
        expect = harness.device_bound(gone="COMPILE")
    else:
        # The searches themselves keep the device busy for part of the time.
        expect = harness.expected(
            ["COMPILE"], ["COMPILE_AUTOTUNE", "COMPILE_MODULE"],
            accept=["fixed-shapes", "warm-up"], forbid=["num-workers"],
            or_verdicts=["HOST", "ALLOC", "SYNC", "LAUNCH"], at_most=1.0 - 0.8 * p50 / mean)
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
