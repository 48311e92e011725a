"""Ordinary jobs: how the batch reaches the device, and what comes back."""

import numpy as np
import torch
import torch.nn.functional as functional

import loop
import models
from loop import go_on, on_device, size


def pageable_big():
    """Large float batches from ordinary memory to a light model."""
    model = on_device(models.light_convolutions())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    side = size(224, 16)
    batches = [torch.randn(size(256, 4), 3, side, side) for _ in range(4)]
    targets = torch.randint(0, 10, (size(256, 4),))
    while True:
        found = model(batches[loop.steps() % 4].to(loop.DEVICE))
        loss = functional.cross_entropy(found, targets.to(loop.DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            break


def pinned_blocking():
    """Pinned batches, but each copy blocks."""
    model = on_device(models.light_convolutions(stride=8))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    side = size(224, 16)
    batches = [torch.randn(size(512, 4), 3, side, side) for _ in range(2)]
    if loop.cuda():
        batches = [b.pin_memory() for b in batches]
    targets = torch.randint(0, 10, (size(512, 4),), device=loop.DEVICE)
    while True:
        loss = functional.cross_entropy(model(batches[loop.steps() % 2].to(loop.DEVICE)), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            break


def float64_batches():
    """NumPy's default type is sent as it is and made smaller on the device."""
    model = on_device(models.perceptron(size(8192, 64), 512, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    table = np.random.default_rng(0).standard_normal((size(4096, 64), size(8192, 64)))
    targets = torch.randint(0, 10, (size(1024, 16),), device=loop.DEVICE)
    rows = len(targets)
    while True:
        at = rows * (loop.steps() % (len(table) // rows))
        inputs = torch.from_numpy(table[at:at + rows]).to(loop.DEVICE).float()
        loss = functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            break


def dictionary_of_tensors():
    """A batch is a dictionary of 400 small tensors, each sent by its own .to()."""
    names = ["field%d" % i for i in range(size(400, 8))]
    model = on_device(models.perceptron(8 * len(names), 256, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    batches = [{name: torch.randn(256, 8) for name in names} for _ in range(4)]
    targets = torch.randint(0, 2, (256,), device=loop.DEVICE)
    while True:
        batch = {name: value.to(loop.DEVICE)
                 for name, value in batches[loop.steps() % 4].items()}
        loss = functional.cross_entropy(model(torch.cat(list(batch.values()), 1)), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            break


def optimizer_on_cpu():
    """Gradients go to the CPU, Adam runs there, the weights come back."""
    width = size(2048, 16)
    model = on_device(models.perceptron(*[width] * 7))
    kept = [p.detach().cpu().clone().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.Adam(kept, 1e-4)
    inputs = torch.randn(size(2048, 8), width, device=loop.DEVICE)
    while True:
        with loop.low_precision():
            loss = model(inputs).float().square().mean()
        model.zero_grad()
        loss.backward()
        for cpu, gpu in zip(kept, model.parameters()):
            cpu.grad = gpu.grad.cpu()
        optimizer.step()
        with torch.no_grad():
            for cpu, gpu in zip(kept, model.parameters()):
                gpu.copy_(cpu)
        if not go_on(loss):
            break


JOBS = [pageable_big, pinned_blocking, float64_batches, dictionary_of_tensors, optimizer_on_cpu]

if __name__ == "__main__":
    loop.main(JOBS)
