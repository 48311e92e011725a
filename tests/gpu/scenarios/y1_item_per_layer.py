"""Y1: .item() on the norm of every layer's output and of every gradient, each step.

Each of them drains the device and the next launch starts from nothing. Fix A: the norms
stay on the device and are read every 50 steps."""

import torch
from torch import nn

import harness


def main():
    job = harness.Job("Y1", "item_per_layer")
    layers, width = (4, 16) if job.tiny else (40, 1024)
    dtype = torch.bfloat16 if job.cuda else torch.float32
    model = nn.ModuleList(nn.Linear(width, width) for _ in range(layers)).to(job.device, dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    read = job.fix == "none"
    log = []

    def step(x, read):
        norms = []
        for layer in model:
            x = torch.relu(layer(x))
            norm = x.norm()
            norms.append(norm.item() if read else norm)
        loss = x.float().square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for parameter in model.parameters():
            norm = parameter.grad.norm()
            norms.append(norm.item() if read else norm)
        optimizer.step()
        log[:] = norms
        return loss.detach()

    def inputs(batch):
        return torch.randn(batch, width, device=job.device, dtype=dtype)

    def find_size():
        batch = 16 if job.tiny else 2048
        while True:
            x = inputs(batch)
            for _ in range(3):
                step(x, False)
            tl = job.host_ms(lambda: step(x, False))
            tc = job.device_ms(lambda: step(x, False))
            enough = 30.0 * tl if job.twin else 1.2 * tl
            if job.tiny or tc > enough or batch >= 1 << 19:
                return {"batch": batch, "tc": tc, "tl": tl}
            batch = batch * 3 // 2

    found = job.calibrated("Y1 %s" % job.twin, find_size)
    batch, tc, tl = found["batch"], found["tc"], found["tl"]
    x = inputs(batch)
    meter = job.meter()
    loss, number = None, 0
    while True:
        loss = step(x, read or number % 50 == 0)
        number += 1
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="SYNC")
    else:
        expect = harness.expected(
            ["SYNC"], ["SYNC_SCALAR"], share=harness.idle_share(tc, mean), accept=["item", "synchronize", "remove-sync", "implicit-sync"],
            forbid=["num-workers", "pin-non-blocking"], forbid_first=["cuda-graph"])
    harness.finish(job, meter, tc, tl, expect, batch, loss)


if __name__ == "__main__":
    main()
