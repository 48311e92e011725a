"""C2: a CUDA graph is captured again for every new batch length, every other step.

Fix A: lengths padded to four graphs, captured beforehand. "Use a CUDA graph" would be
the wrong advice. The twin replays one graph of long kernels."""

import torch
from torch import nn

import harness


def main():
    job = harness.Job("C2", "recapture_by_shape", steps=60)
    if (job.fix == "A" or job.twin) and not job.tiny:
        job.args.steps *= 40  # a replayed step takes 2 ms, and nothing marks it for the recorder
    layers, width, base = (2, 16, 8) if job.tiny else (60, 4096 if job.twin else 512, 8192 if job.twin else 512)
    model = nn.Sequential(*[m for _ in range(layers) for m in (nn.Linear(width, width), nn.ReLU())])
    dtype = torch.bfloat16 if job.cuda else torch.float32
    model = model.to(job.device, dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    source = torch.randn(base + 2048, width, device=job.device, dtype=dtype)

    def step(length):
        loss = model(source[:length]).float().square().mean()
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        return loss.detach()

    side = torch.cuda.Stream() if job.cuda else None

    def capture(length):
        if not job.cuda:
            return lambda: step(length)
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            graph.capture_begin()
            step(length)
            graph.capture_end()
        return graph.replay

    if job.cuda:
        with torch.cuda.stream(side):
            for _ in range(4):
                step(base)
        torch.cuda.synchronize()
    else:
        step(base)
    tc, tl = job.step_times("C2 %s" % job.twin, lambda: step(base))
    graphs = {}
    if job.fix == "A" or job.twin:
        for k in range(4):
            graphs[k] = capture(base + 8 * k)
    meter = job.meter(warm_up=4)
    number = 0
    while True:
        k = 0 if job.twin else number // 2 if job.fix == "none" else number % 4
        if k not in graphs:
            graphs[k] = capture(base + 8 * k)
        graphs[k]()
        number += 1
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin:
        expect = harness.device_bound(gone="COMPILE", forbid=["num-workers"])
    elif job.fix == "A":
        expect = harness.expected(["COMPUTE", "UNDERFILLED", "LAUNCH"], gone="COMPILE")
    else:
        expect = harness.expected(
            ["COMPILE"], ["COMPILE_CAPTURE"], share=harness.idle_share(tc, mean), tolerance=0.2,
            accept=["fixed-shapes", "warm-up"], or_verdicts=["LAUNCH", "HOST"],
            forbid=["cuda-graph", "num-workers"])
    harness.finish(job, meter, tc, tl, expect, base)


if __name__ == "__main__":
    main()
