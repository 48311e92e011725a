"""R4: a million rows in memory, fetched one by one and stacked: cost per sample, not per byte.

Fix A: one indexing call for the whole batch."""

import gc

import torch
from torch import nn

import harness


class Rows(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.x = torch.randn(rows, 20)
        self.y = torch.randn(rows, 1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


def main():
    job = harness.Job("R4", "collate_in_memory", steps=100)
    rows, batch, width = (4096, 64, 8) if job.tiny else (1_000_000, 4096, 1024)
    model = nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                          nn.Linear(width, 1)).to(job.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    ballast = harness.Ballast(job, torch.bfloat16 if job.cuda else torch.float32)

    def step(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        ballast.run()
        return loss.detach()

    x, y = torch.randn(batch, 20, device=job.device), torch.randn(batch, 1, device=job.device)
    tc, tl = job.step_times("R4", lambda: step(x, y))
    tc += ballast.set((60.0 if job.twin else 2.0 * tl) if not job.tiny else 0.1)
    data = Rows(rows)
    gc.disable()  # thousands of tensors a batch set off collections of 140 ms: another cause
    if job.fix == "A":
        sampler = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(data), batch, True)
        batches = torch.utils.data.DataLoader(data, batch_size=None, sampler=sampler,
                                              pin_memory=job.cuda)
    else:
        batches = harness.loader(job, data, batch, shuffle=True)
    meter = job.meter()
    loss = None
    for x, y in batches:
        loss = step(x.to(job.device, non_blocking=True), y.to(job.device, non_blocking=True))
        if not meter.go_on():
            break
    meter.stop()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.expected(["COMPUTE"] if job.twin else ["COMPUTE", "DATA"])
    else:
        expect = harness.expected(
            ["DATA"], ["DATA_COLLATE", "DATA_CPU"], ["LIMITER_SERIAL"],
            share=harness.idle_share(tc, mean), accept=["batch-index", "collate", "num-workers"],
            forbid=["cache", "larger-batch"])
    harness.finish(job, meter, tc, tl, expect, batch, loss)


if __name__ == "__main__":
    main()
