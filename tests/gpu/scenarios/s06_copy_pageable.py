"""S06: 154 MB a step from ordinary memory with a blocking copy, for a light network.

Fix A: pinned memory and a side stream. Fix B: bytes on the wire, cast on the device (a
quarter of them). Fix C looks like B but casts on the host: as many bytes as before."""

import torch
from torch import nn

import harness
import prefetch


def main():
    # Steps of 15 ms with a fix: enough of them for a window.
    job = harness.Job("S06", "copy_pageable", fixes=("none", "A", "B", "C"), steps=240)
    batch, side = (2, 16) if job.tiny else (256, 224)
    dtype = torch.bfloat16 if job.cuda else torch.float32
    model = nn.Sequential(nn.Conv2d(3, 32, 8, 8), nn.ReLU(), nn.Conv2d(32, 64, 2, 2), nn.ReLU(),
                          nn.Flatten(), nn.LazyLinear(10)).to(job.device, dtype)
    model(torch.zeros(1, 3, side, side, device=job.device, dtype=dtype))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    ballast = harness.Ballast(job, dtype)

    def step(images):
        loss = model(images.to(dtype).mul(1 / 255)).float().square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        ballast.run()
        return loss.detach()

    bytes_on_wire = job.fix in ("B", "C")
    batches = [torch.randint(0, 256, (batch, 3, side, side), dtype=torch.uint8)
               for _ in range(4)]
    if not bytes_on_wire:
        batches = [b.float() for b in batches]
    on_device = batches[0].to(job.device)
    tc, tl = job.step_times("S06 step " + job.fix, lambda: step(on_device))
    copy_ms = job.calibrated("S06 copy " + job.fix, lambda: {"ms": job.host_ms(
        lambda: (batches[1].float() if job.fix == "C" else batches[1]).to(job.device))})["ms"]
    # The copy of fix A takes a fifth of the pageable one: the device must have more to do.
    if tc < max(2.5 * tl, 5.0) and not job.tiny:
        tc += ballast.set(max(2.5 * tl, 5.0) - tc)
    if job.twin:
        tc += ballast.set(15 * copy_ms)
    meter = job.meter()
    loss = None
    if job.fix == "A":
        batches = [b.pin_memory() for b in batches] if job.cuda else batches
        source = prefetch.ahead(job, batches, meter.total() + 2)
    else:
        source = (batches[i % 4] for i in range(meter.total() + 2))
    for images in source:
        if job.fix == "C":
            images = images.float()
        loss = step(images.to(job.device))
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    job.measured.update(copy_ms=copy_ms)
    sent = on_device.numel() * (1 if job.fix == "B" else 4)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="TRANSFER", bytes_per_step=sent)
    else:
        expect = harness.expected(
            ["TRANSFER"], ["BUSY_COPY_EXPOSED", "XFER_PAGEABLE"],
            # With the host cast the device also waits for it: only what it leaves is a copy.
            share=None if job.fix == "C" else harness.idle_share(tc, mean),
            accept=["pin-non-blocking", "prefetch-stream", "uint8"],
            forbid=["num-workers", "larger-batch"], bytes_per_step=sent)
        if job.fix == "C":
            expect["verdicts"] = ["TRANSFER", "HOST"]
    harness.finish(job, meter, tc, tl, expect, batch, loss)


if __name__ == "__main__":
    main()
