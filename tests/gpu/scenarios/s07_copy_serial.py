"""S07: pinned batches, but a blocking copy on the stream that computes: 0.7 tc a step.

Fix A: a side stream that copies ahead. Fix B (misuse): non_blocking alone, on the same
stream, which changes nothing for the device."""

import torch
from torch import nn

import harness
import prefetch


def main():
    job = harness.Job("S07", "copy_serial", fixes=("none", "A", "B"), steps=80)
    batch, side = (2, 16) if job.tiny else (512, 224)
    dtype = torch.bfloat16 if job.cuda else torch.float32
    model = nn.Sequential(nn.Conv2d(3, 32, 8, 8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
    model = model.to(job.device, dtype)
    model(torch.zeros(1, 3, side, side, device=job.device, dtype=dtype))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    ballast = harness.Ballast(job, dtype)

    def step(images):
        loss = model(images.to(dtype)).float().square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        ballast.run()
        return loss.detach()

    batches = [torch.randn(batch, 3, side, side) for _ in range(3)]
    if job.cuda:
        batches = [b.pin_memory() for b in batches]
    on_device = batches[0].to(job.device)
    tc, tl = job.step_times("S07 step", lambda: step(on_device))
    copy_ms = job.calibrated("S07 copy", lambda: {"ms": job.device_ms(
        lambda: batches[1].to(job.device, non_blocking=True))})["ms"]
    wanted = copy_ms / 0.7 * (25 if job.twin else 1)
    if wanted > tc:
        tc += ballast.set(wanted - tc)
    meter = job.meter()
    count = meter.total() + 2
    if job.fix == "A":
        source = prefetch.ahead(job, batches, count)
    else:
        source = (batches[i % 3] for i in range(count))
    loss = None
    for images in source:
        loss = step(images.to(job.device, non_blocking=job.fix == "B"))
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    job.measured.update(copy_ms=copy_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="TRANSFER")
    else:
        expect = harness.expected(
            ["TRANSFER"], ["BUSY_COPY_EXPOSED", "XFER_SYNC"],
            share=harness.idle_share(tc, mean), accept=["prefetch-stream", "pin-non-blocking"]
            if job.fix == "none" else ["prefetch-stream"],
            forbid=["num-workers", "pin-non-blocking"])
    harness.finish(job, meter, tc, tl, expect, batch, loss)


if __name__ == "__main__":
    main()
