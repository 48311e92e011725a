"""Training jobs to record: unmodified PyTorch, nothing of the recorder in here.

Usage: jobs.py JOB [--steps N | --seconds S] [--batch B] [--workers W]
  image   ResNet-18, CPU-heavy preparation in the DataLoader, loss.item() each step
  mlp     8 layers, 256 wide, SGD without foreach, data on the GPU: launch-bound
  graph   the same step captured into one CUDA graph and replayed
  compiled  a small language model, torch.compile(mode="reduce-overhead"): graphs captured and
          replayed by the forward and, on another thread, by autograd
  resnet  ResNet-50, bf16, channels_last, data on the GPU: compute-bound
  triton  20 small Triton kernels and one of PyTorch a step
Out: one JSON line with step times of the last four fifths of the run.
"""
import argparse
import json
import time

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("job", choices=["image", "mlp", "graph", "compiled", "resnet", "triton"])
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--seconds", type=float, default=0)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--batch", type=int, default=0)
parser.add_argument("--tag", default="")
options = parser.parse_args()
torch.manual_seed(0)
ends, losses = [], []


def loop(step, batches=None):
    begin = time.perf_counter()
    iterator = iter(batches) if batches is not None else None
    while (time.perf_counter() - begin < options.seconds if options.seconds
           else len(ends) < options.steps):
        batch = None
        if iterator is not None:
            batch = next(iterator, None)
            if batch is None:
                iterator = iter(batches)
                batch = next(iterator)
        step(batch)
        ends.append(time.perf_counter())
    torch.cuda.synchronize()


def image():
    import numpy
    import torchvision

    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return 4096

        def __getitem__(self, i):
            pixels = numpy.random.default_rng(i).integers(0, 255, (256, 256, 3), dtype=numpy.uint8)
            x = torch.from_numpy(pixels).permute(2, 0, 1).float().div_(255)
            x = nn.functional.interpolate(x[None], size=(224, 224), mode="bilinear", antialias=True)[0]
            x = (x - 0.45) / 0.225
            return (x.flip(2) if i & 1 else x), i % 10

    torch.set_num_threads(1)
    net = torchvision.models.resnet18(num_classes=10).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loss_function = nn.CrossEntropyLoss()

    def step(batch):
        x, y = (t.cuda(non_blocking=True) for t in batch)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_function(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    loop(step, torch.utils.data.DataLoader(
        Images(), batch_size=options.batch or 32, shuffle=True, num_workers=options.workers,
        pin_memory=True, drop_last=True))


def mlp(captured):
    size = options.batch or 8
    net = nn.Sequential(*[m for _ in range(8) for m in (nn.Linear(256, 256), nn.ReLU())]).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, foreach=False)
    x, y = torch.randn(size, 256, device="cuda"), torch.randn(size, 256, device="cuda")

    def body():
        optimizer.zero_grad(set_to_none=not captured)
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    if captured:
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(3):
                body()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = body()

        def step(_):
            graph.replay()
            if len(ends) % 10 == 9:
                losses.append(loss.item())
    else:
        def step(_):
            loss = body()
            if len(ends) % 100 == 99:
                losses.append(loss.item())
    loop(step)


def compiled():
    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            h = self.norms[0](x)
            x = x + self.attention(h, h, h, need_weights=False)[0]
            return x + self.mlp(self.norms[1](x))

    size, length, vocabulary = options.batch or 4, 64, 1000
    net = nn.Sequential(nn.Embedding(vocabulary, 128), *[Block(128, 4) for _ in range(4)],
                        nn.Linear(128, vocabulary)).cuda()
    net = torch.compile(net, mode="reduce-overhead")
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    tokens = torch.randint(0, vocabulary, (64, size, length + 1))

    def step(_):
        batch = tokens[len(ends) % len(tokens)].cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = net(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if len(ends) % 10 == 9:
            losses.append(loss.item())

    loop(step)


def resnet():
    import torchvision
    size = options.batch or 256
    net = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loss_function = nn.CrossEntropyLoss()
    x = torch.randn(size, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (size,), device="cuda")

    def step(_):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = loss_function(net(x), y)
        loss.backward()
        optimizer.step()
        if len(ends) % 10 == 9:
            losses.append(loss.item())

    loop(step)


def triton():
    from addk import addk
    u, v = torch.zeros(1024, device="cuda"), torch.zeros(1024, device="cuda")

    def step(_):
        for _ in range(20):
            addk[(1,)](u, v, 1024)
        return u + v

    loop(step)


begin = time.perf_counter()
{"image": image, "mlp": lambda: mlp(False), "graph": lambda: mlp(True),
 "compiled": compiled, "resnet": resnet, "triton": triton}[options.job]()
steps = sorted((b - a) * 1e6 for a, b in zip(ends[len(ends) // 5:], ends[len(ends) // 5 + 1:]))
print(json.dumps({
    "job": options.job, "tag": options.tag, "steps": len(ends),
    "median_us": round(steps[len(steps) // 2], 1), "mean_us": round(sum(steps) / len(steps), 1),
    "max_us": round(steps[-1], 1), "wall_s": round(time.perf_counter() - begin, 2),
    "loss_last": losses[-1] if losses else None}))
