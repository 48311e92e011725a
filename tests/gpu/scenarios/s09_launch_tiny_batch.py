"""S09: a 60-layer MLP, 128 wide, batch 8: kernels shorter than their launches.

Fix A: batch 256 (same step time, 32 times the samples). Fix B: the whole step as one CUDA
graph. Fix C is no fix: a synchronisation after every step, which costs nothing here
because the device is already drained; no gain may be promised for removing it."""

import torch
import torch.nn.functional as functional
from torch import nn

import harness


def main():
    job = harness.Job("S09", "launch_tiny_batch", fixes=("none", "A", "B", "C"), steps=200)
    layers = 6 if job.tiny else 60
    width = 16 if job.tiny else (2048 if job.twin else 128)
    batch = 8 if not job.twin or job.tiny else 8192
    if job.fix == "A":
        batch *= 32 if not job.twin else 2
    model = nn.Sequential(*[m for _ in range(layers) for m in (nn.Linear(width, width), nn.ReLU())])
    dtype = torch.bfloat16 if job.twin and job.cuda else torch.float32
    model = model.to(job.device, dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, fused=job.cuda,
                                 capturable=job.cuda and job.fix == "B")
    x = torch.randn(batch, width, device=job.device, dtype=dtype)
    y = torch.randn(batch, width, device=job.device, dtype=dtype)

    def step():
        loss = functional.mse_loss(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    tc, tl = job.step_times("S09 %s %s" % (job.fix, job.twin), step)
    run = step
    if job.fix == "B" and job.cuda:
        graph = torch.cuda.CUDAGraph()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step()
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            captured = step()

        def run():
            graph.replay()
            return captured

    meter = job.meter()
    loss = None
    while True:
        loss = run()
        if job.fix == "C":
            job.synchronize()
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin:
        expect = harness.device_bound(gone="LAUNCH", forbid=["larger-batch"])
    elif job.fix == "B":
        # Nodes a few microseconds long with gaps of one: which of the three is largest is
        # not this job's point.
        expect = harness.expected(["UNDERFILLED", "COMPUTE", "LAUNCH"], forbid=["num-workers"],
                                  forbid_first=["cuda-graph"])
    else:
        expect = harness.expected(
            ["LAUNCH"], ["LAUNCH_LEAF"], share=harness.idle_share(tc, mean),
            # Python between two launches that are far apart is put aside.
            share_with=["HOST_"],
            accept=["cuda-graph", "larger-batch"],
            forbid=["num-workers", "pin-non-blocking", "item", "synchronize", "remove-sync", "implicit-sync"])
    harness.finish(job, meter, tc, tl, expect, batch, loss)


if __name__ == "__main__":
    main()
