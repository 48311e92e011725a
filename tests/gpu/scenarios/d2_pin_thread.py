"""D2: workers hand over large tensors that already lie in shared memory; one thread pins them.

That thread copies every batch once more, which takes longer than the step. Fix A: bytes
instead of floats, a quarter of the size."""

import torch
from torch import nn

import harness


class Shared(torch.utils.data.Dataset):
    def __init__(self, length, tensors):
        self.length = length
        self.tensors = tensors

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.tensors[index % len(self.tensors)]


def main():
    job = harness.Job("D2", "pin_thread", steps=60)
    shape = (2, 3, 16, 16) if job.tiny else (512, 3, 224, 224)
    dtype = torch.bfloat16 if job.cuda else torch.float32
    model = nn.Sequential(nn.Conv2d(3, 32, 8, 8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
    model = model.to(job.device, dtype)
    model(torch.zeros(1, *shape[1:], device=job.device, dtype=dtype))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    ballast = harness.Ballast(job, dtype)

    def step(images):
        loss = model(images.to(dtype).mul(1 / 255)).float().square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        ballast.run()
        return loss.detach()

    tensors = [torch.randint(0, 256, shape, dtype=torch.uint8) for _ in range(2)]
    if job.fix != "A":
        tensors = [t.float() for t in tensors]
    for tensor in tensors:
        tensor.share_memory_()
    on_device = tensors[0].to(job.device)
    tc, tl = job.step_times("D2 step " + job.fix, lambda: step(on_device))

    def pin():  # the second time the pinned memory is there
        tensors[0].pin_memory() if job.cuda else tensors[0].clone()

    pin_ms = job.calibrated("D2 pin " + job.fix, lambda: {"ms": job.host_ms(pin, 5)})["ms"]
    # In the loop every batch is new to the pinning thread, which makes it eight times as slow.
    wanted = pin_ms * 15.0 if job.twin else max(pin_ms / 4.0, tc)
    if wanted > tc:
        tc += ballast.set(wanted - tc)
    data = Shared(job.total_steps() + 2, tensors)
    batches = harness.loader(job, data, None, num_workers=2, drop_last=False)
    meter = job.meter()
    loss = None
    for images in batches:
        loss = step(images.to(job.device, non_blocking=True))
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    job.measured.update(pin_ms=pin_ms)
    if job.twin:
        expect = harness.expected(["COMPUTE"])
    elif job.fix == "A":
        expect = harness.expected(["COMPUTE", "DATA", "TRANSFER"])
    else:
        # The copy to the device is asynchronous but exposed, too: part of the idle time.
        expect = harness.expected(
            ["DATA"], ["DATA_PIN"], ["LIMITER_PIN"], share=harness.idle_share(tc, mean),
            tolerance=0.15, accept=["pin-thread", "uint8"],
            forbid=["num-workers", "prefetch-factor", "cache"])
    harness.finish(job, meter, tc, tl, expect, shape[0], loss)


if __name__ == "__main__":
    main()
