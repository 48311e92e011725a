"""A2: every step asks for new pinned memory (a replay buffer that grows), about 2 tc each.

Fix A: the pinned memory is allocated once and used in turn."""

import time

import torch

import harness


def pinned(job, megabytes):
    return torch.empty(int(megabytes * (1 << 20)), dtype=torch.uint8, pin_memory=job.cuda)


def main():
    job = harness.Job("A2", "pinned_alloc", steps=60)
    trainer = harness.Trainer(job)
    images, labels = trainer.random_batch("cpu")
    labels = labels.to(job.device)

    def find_size():
        megabytes = 1.0
        while True:  # sizes double in the allocator anyway
            begin = time.perf_counter()
            pinned(job, megabytes)
            cost_ms = (time.perf_counter() - begin) * 1e3
            if cost_ms > 2.0 * trainer.tc_ms or megabytes >= 256 or job.tiny:
                return {"megabytes": megabytes, "ms": cost_ms}
            megabytes *= 2

    found = job.calibrated("A2", find_size)
    megabytes, cost_ms = found["megabytes"], found["ms"]
    if job.twin:
        trainer.add_ballast(3.0 * cost_ms)
    kept = [pinned(job, megabytes)]
    meter = job.meter()
    loss = None
    while True:
        if job.fix == "none":
            kept.append(pinned(job, megabytes))
        staging = kept[-1][:images.numel()]
        staging.copy_(images.flatten())
        loss = trainer.step(staging.view(images.shape).to(job.device, non_blocking=True), labels)
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    job.measured.update(pinned_mb=megabytes, alloc_ms=cost_ms)
    if job.fix == "A":
        expect = harness.device_bound(gone="ALLOC")
    elif job.twin:
        # Whether pinning waits for the device is the driver's affair.
        expect = harness.expected(["COMPUTE"])
    else:
        expect = harness.expected(
            ["ALLOC"], ["ALLOC_PINNED"], share=harness.idle_share(trainer.tc_ms, mean),
            accept=["alloc-pinned", "alloc"], forbid=["num-workers", "larger-batch"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
