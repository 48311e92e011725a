"""S10: 2000 small parameters updated one by one by Adam (foreach=False).

The forward and backward pass is a small net beside them. Fix A: fused=True. Fix B:
foreach=True."""

import torch
from torch import nn

import harness


def main():
    job = harness.Job("S10", "optimizer_for_loop", fixes=("none", "A", "B"), steps=60)
    count, size = (20, 8) if job.tiny else (2000, 64)
    if job.twin and not job.tiny:
        count, size = 60, 4096  # (2048: 4.7 ms for the device, 6.5 to launch them)
    net = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).to(job.device)
    parameters = [nn.Parameter(torch.randn(size, size, device=job.device)) for _ in range(count)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    options = {"A": {"fused": job.cuda}, "B": {"foreach": True}}.get(job.fix, {"foreach": False})
    everything = list(net.parameters()) + parameters
    optimizer = torch.optim.Adam(everything, lr=1e-5, **options)
    x = torch.randn(64, 256, device=job.device)
    y = torch.randint(0, 10, (64,), device=job.device)

    def step():
        loss = torch.nn.functional.cross_entropy(net(x), y)
        for parameter in net.parameters():
            parameter.grad = None
        loss.backward()
        optimizer.step()
        return loss.detach()

    def device_ms(step):
        if job.fix != "none" or job.twin:
            return job.device_ms(step)
        # The launch queue does not hold a whole step: measure 40 parameters and scale.
        some = torch.optim.Adam(parameters[:40], lr=1e-5, foreach=False)
        some.step()
        return job.device_ms(some.step) * len(everything) / 40

    tc, tl = job.step_times("S10 %s %s" % (job.fix, job.twin), step, device_ms)
    meter = job.meter(warm_up=5)
    loss = None
    while True:
        loss = step()
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin:
        expect = harness.device_bound(gone="LAUNCH")
    elif job.fix == "none":
        expect = harness.expected(
            ["LAUNCH"], ["LAUNCH_LEAF", "DISPATCH"], share=harness.idle_share(tc, mean),
            accept=["fused-optimizer", "cuda-graph"], forbid=["num-workers"],
            forbid_first=["larger-batch"], or_verdicts=["HOST"])
    else:
        # What is left is the small net, whose launches are the rest of the step.
        # foreach still spends several times the host time that fused does: fused is good advice.
        forbid = ["num-workers"] + (["fused-optimizer"] if job.fix == "A" else [])
        expect = harness.expected(["LAUNCH", "COMPUTE", "UNDERFILLED", "HOST"], forbid=forbid)
    harness.finish(job, meter, tc, tl, expect, 64, loss)


if __name__ == "__main__":
    main()
