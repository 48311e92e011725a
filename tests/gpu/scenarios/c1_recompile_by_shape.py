"""C1: torch.compile with static shapes and a new batch length every other step.

Every new length is compiled again. Fix A: lengths padded to four, compiled beforehand. The
twin has one length, compiled beforehand, and long steps."""

import torch
from torch import nn

import harness


def main():
    job = harness.Job("C1", "recompile_by_shape", steps=40)
    layers, width, base = (2, 16, 8) if job.tiny else (12, 1024, 65536 if job.twin else 4096)
    torch._dynamo.config.recompile_limit = 1000
    torch._dynamo.config.cache_size_limit = 1000
    model = nn.Sequential(*[m for _ in range(layers) for m in (nn.Linear(width, width), nn.GELU())])
    dtype = torch.bfloat16 if job.cuda else torch.float32
    model = model.to(job.device, dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    # The graph is traced and rebuilt for every shape; the kernels stay those of eager mode.
    compiled = torch.compile(model, backend="aot_eager", dynamic=False)
    source = torch.randn(base + 2048, width, device=job.device, dtype=dtype)

    def step(run, length):
        loss = run(source[:length]).float().square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    tc, tl = job.step_times("C1 %s" % job.twin, lambda: step(model, base))
    if job.fix == "A" or job.twin:
        for k in range(4):
            step(compiled, base + 8 * k)
    meter = job.meter(warm_up=4)
    loss, number = None, 0
    while True:
        k = 0 if job.twin else number // 2 if job.fix == "none" else number % 4
        loss = step(compiled, base + 8 * k)
        number += 1
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin:
        expect = harness.device_bound(gone="COMPILE", forbid=["num-workers"])
    elif job.fix == "A":
        expect = harness.expected(["COMPUTE", "LAUNCH", "HOST"], gone="COMPILE")
    else:
        expect = harness.expected(
            ["COMPILE"], ["COMPILE_JIT"], share=harness.idle_share(max(tc, tl), mean),
            tolerance=0.15, accept=["fixed-shapes", "warm-up"],
            forbid=["num-workers", "larger-batch", "cuda-graph"])
    harness.finish(job, meter, tc, tl, expect, base, loss)


if __name__ == "__main__":
    main()
