"""Ordinary jobs: loops that look at their numbers, or stop for them, every step."""

import json
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as functional
from torch.utils.data import DataLoader, TensorDataset

import loop
import models
from harness import ResNet18
from loop import go_on, on_device, size


def images(batch, side):
    return (torch.randn(batch, 3, side, side, device=loop.DEVICE),
            torch.randint(0, 10, (batch,), device=loop.DEVICE))


def resnet(classes=10):
    model = on_device(ResNet18(size(64, 4), classes))
    return model.to(memory_format=torch.channels_last)


def isnan_every_step():
    """A device-bound model and a look for NaN before each backward pass."""
    model = resnet()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    inputs, targets = images(size(512, 4), size(224, 16))
    while True:
        with loop.low_precision():
            loss = functional.cross_entropy(model(inputs).float(), targets)
        if torch.isnan(loss):
            raise RuntimeError("the loss is NaN")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            break


def item_every_step():
    """Loss and accuracy by .item() after each step of a device-bound model."""
    model = resnet()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    inputs, targets = images(size(512, 4), size(224, 16))
    history = []
    while True:
        with loop.low_precision():
            found = model(inputs)
            loss = functional.cross_entropy(found.float(), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append((loss.item(), (found.argmax(1) == targets).float().mean().item()))
        if not go_on(loss):
            break


def phase_timing():
    """Each phase timed between two torch.cuda.synchronize(); NumPy mixup is prepared after one."""
    model = resnet()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    inputs, targets = images(size(256, 4), size(224, 16))
    random, seconds = np.random.default_rng(0), [0.0] * 4

    def lap(phase, begin):
        if loop.cuda():
            torch.cuda.synchronize()
        now = time.perf_counter()
        seconds[phase] += now - begin
        return now

    while True:
        now = lap(3, time.perf_counter())
        share = random.beta(0.4, 0.4, size(40_000, 100)).mean()
        mixed = share * inputs + (1 - share) * inputs.flip(0)
        now = lap(0, now)
        with loop.low_precision():
            loss = functional.cross_entropy(model(mixed).float(), targets)
        now = lap(1, now)
        optimizer.zero_grad()
        loss.backward()
        now = lap(2, now)
        optimizer.step()
        lap(3, now)
        if not go_on(loss):
            break
    print("seconds:", seconds)


def norms_every_step():
    """The norm of every gradient goes to a log file each step."""
    model = resnet()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    inputs, targets = images(size(256, 4), size(64, 16))
    handle, path = tempfile.mkstemp(prefix="ordinary")
    with os.fdopen(handle, "w") as log:
        while True:
            with loop.low_precision():
                loss = functional.cross_entropy(model(inputs).float(), targets)
            optimizer.zero_grad()
            loss.backward()
            norms = {name: p.grad.norm().item() for name, p in model.named_parameters()}
            log.write(json.dumps({"step": loop.steps(), "loss": loss.item(), **norms}) + "\n")
            log.flush()
            optimizer.step()
            if not go_on(loss):
                break
    os.unlink(path)


def metrics_every_step():
    """Small images, twelve .item() and a synchronisation a step."""
    model = on_device(ResNet18(size(64, 4), 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = TensorDataset(torch.randn(size(20000, 256), 3, 32, 32),
                         torch.randint(0, 10, (size(20000, 256),)))
    sums = [0.0] * 3
    while True:
        for inputs, targets in DataLoader(data, 128, shuffle=True, num_workers=2,
                                          pin_memory=loop.cuda()):
            inputs, targets = inputs.to(loop.DEVICE), targets.to(loop.DEVICE)
            found = model(inputs)
            loss = functional.cross_entropy(found, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sums[0] += loss.item()
            sums[1] += (found.argmax(1) == targets).float().mean().item()
            for number in range(10):
                sums[2] += ((found.argmax(1) == number) & (targets == number)).sum().item()
            if loop.cuda():
                torch.cuda.synchronize()
            if not go_on(loss):
                return


def confusion_on_cpu():
    """Predictions go to the CPU each step and are counted in a Python loop."""
    model = on_device(models.perceptron(256, 512, 512, 100))
    optimizer = torch.optim.Adam(model.parameters())
    inputs = torch.randn(size(32768, 64), 256, device=loop.DEVICE)
    targets = torch.randint(0, 100, (len(inputs),), device=loop.DEVICE)
    confusion = [[0] * 100 for _ in range(100)]
    while True:
        found = model(inputs)
        loss = functional.cross_entropy(found, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        said, right = found.argmax(1).cpu().numpy(), targets.cpu().numpy()
        for a, b in zip(said, right):
            confusion[int(a)][int(b)] += 1
        if not go_on(loss):
            break


def ranking_every_20():
    """Every 20 steps an evaluation whose ranking score is computed in Python."""
    model = on_device(models.perceptron(512, 2048, 2048, 1))
    optimizer = torch.optim.Adam(model.parameters())
    inputs = torch.randn(size(4096, 64), 512, device=loop.DEVICE)
    targets = torch.randint(0, 2, (len(inputs), 1), device=loop.DEVICE).float()
    while True:
        loss = functional.binary_cross_entropy_with_logits(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loop.steps() % 20 == 19:
            model.eval()
            with torch.no_grad():
                scores = model(inputs).flatten().tolist()
            model.train()
            pairs = sorted(zip(scores * size(20, 1), targets.flatten().tolist() * size(20, 1)))
            below, better = 0, 0
            for _, target in pairs:
                below += target == 0
                better += below if target else 0
            print("ranking", better, flush=True)
        if not go_on(loss):
            break


def save_every_20():
    """torch.save() of model and optimizer every 20 steps."""
    width = size(2048, 16)
    model = on_device(models.perceptron(*[width] * 9))
    optimizer = torch.optim.Adam(model.parameters())
    inputs = torch.randn(size(4096, 8), width, device=loop.DEVICE)
    handle, path = tempfile.mkstemp(prefix="ordinary")
    os.close(handle)
    while True:
        with loop.low_precision():
            loss = model(inputs).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loop.steps() % 20 == 19:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
        if not go_on(loss):
            break
    os.unlink(path)


JOBS = [isnan_every_step, item_every_step, phase_timing, norms_every_step, metrics_every_step,
        confusion_on_cpu, ranking_every_20, save_every_20]

if __name__ == "__main__":
    loop.main(JOBS)
