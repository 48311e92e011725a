"""T1, a trap: the device is never idle, but each kernel is two blocks (a scan of two rows).

Utilisation reads 100 %. Fix A: 40 rows, 40 blocks, in the same time: better, but most of the
device is empty still."""

import torch

import harness


def main():
    job = harness.Job("T1", "busy_but_empty", steps=60)
    rows = {"none": 2, "A": 40}[job.fix]  # (one row would be scanned by all blocks)
    if job.twin:
        rows = 1024
    length = 256 if job.tiny else (50_000 if job.twin else 700_000)
    weight = torch.nn.Parameter(torch.ones(1, device=job.device))
    optimizer = torch.optim.SGD([weight], lr=1e-6)
    x = torch.randn(rows, length, device=job.device) / length

    def step():
        y = x * weight
        for _ in range(4):
            y = torch.cumsum(y, dim=1) / length
        loss = y.mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    tc, tl = job.step_times("T1 %s %s" % (job.fix, job.twin), step)
    meter = job.meter()
    loss = None
    while True:
        loss = step()
        if not meter.go_on():
            break
    meter.stop()
    if job.twin:
        expect = harness.expected(["COMPUTE"], forbid=["num-workers", "cuda-graph"])
    else:
        expect = harness.expected(
            ["UNDERFILLED"], ["BUSY_COMPUTE"], accept=["larger-batch"],
            forbid=["num-workers", "cuda-graph", "pin-non-blocking"], busy_above=0.95,
            fill_below=0.05 if job.fix == "none" else 0.6)
    harness.finish(job, meter, tc, tl, expect, rows, loss)


if __name__ == "__main__":
    main()
