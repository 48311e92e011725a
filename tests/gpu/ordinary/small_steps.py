"""Ordinary jobs: many small kernels, from loops that Python drives."""

import torch
import torch.nn.functional as functional
from torch import nn

import loop
import models
from loop import go_on, on_device, size


def lstm_loop():
    cell, head = on_device(nn.LSTMCell(128, 256), nn.Linear(256, 10))
    optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])
    inputs = torch.randn(32, size(60, 5), 128, device=loop.DEVICE)
    targets = torch.randint(0, 10, (32,), device=loop.DEVICE)
    while True:
        hidden = memory = torch.zeros(32, 256, device=loop.DEVICE)
        for moment in range(inputs.shape[1]):
            hidden, memory = cell(inputs[:, moment], (hidden, memory))
        loss = functional.cross_entropy(head(hidden), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            break


def rl_loop():
    """Policy gradient with an environment on the CPU: one action at a time."""
    policy = on_device(nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4)))
    optimizer = torch.optim.Adam(policy.parameters())
    state = torch.randn(8)
    while True:
        logs = []
        for _ in range(size(50, 5)):
            choice = torch.distributions.Categorical(logits=policy(state.to(loop.DEVICE)))
            action = choice.sample()
            logs.append(choice.log_prob(action))
            state = torch.randn(8) + action.item()
        loss = -torch.stack(logs).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            break


def message_passing():
    """A small graph network written with index_add_."""
    nodes, edges, width = size(3000, 50), size(20000, 200), 64
    source = torch.randint(0, nodes, (edges,), device=loop.DEVICE)
    target = torch.randint(0, nodes, (edges,), device=loop.DEVICE)
    features = torch.randn(nodes, width, device=loop.DEVICE)
    labels = torch.randint(0, 7, (nodes,), device=loop.DEVICE)
    layers = on_device(nn.ModuleList(nn.Linear(2 * width, width) for _ in range(4)))
    head = on_device(nn.Linear(width, 7))
    optimizer = torch.optim.Adam([*layers.parameters(), *head.parameters()], 1e-2)
    while True:
        x = features
        for layer in layers:
            sent = functional.relu(layer(torch.cat([x[source], x[target]], 1)))
            x = functional.layer_norm(x + torch.zeros_like(x).index_add_(0, target, sent), (width,))
        loss = functional.cross_entropy(head(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            break


def geometric():
    from torch_geometric.nn import GCNConv
    nodes = size(2000, 50)
    edges = torch.randint(0, nodes, (2, 5 * nodes), device=loop.DEVICE)
    features = torch.randn(nodes, 64, device=loop.DEVICE)
    labels = torch.randint(0, 7, (nodes,), device=loop.DEVICE)
    first, second = on_device(GCNConv(64, 64), GCNConv(64, 7))
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()])
    while True:
        optimizer.zero_grad()
        found = second(functional.relu(first(features, edges)), edges)
        loss = functional.cross_entropy(found, labels)
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            break


def sparse_embeddings():
    """Factorisation of sparse rows: sparse gradients are made unique in every step."""
    users = on_device(nn.Embedding(size(200_000, 100), 64, sparse=True))
    things = on_device(nn.Embedding(size(50_000, 100), 64, sparse=True))
    optimizer = torch.optim.SparseAdam([*users.parameters(), *things.parameters()])
    user = torch.randint(0, users.num_embeddings, (16, 2048), device=loop.DEVICE)
    thing = torch.randint(0, things.num_embeddings, (16, 2048), device=loop.DEVICE)
    stars = torch.rand(16, 2048, device=loop.DEVICE)
    while True:
        at = loop.steps() % 16
        loss = functional.mse_loss((users(user[at]) * things(thing[at])).sum(1), stars[at])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            break


def lbfgs():
    """A second-order optimizer whose decisions are taken on the host."""
    model = on_device(models.perceptron(2, 64, 64, 64, 1, activation=nn.Tanh))
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)
    points = torch.rand(size(4096, 64), 2, device=loop.DEVICE)
    wanted = (points * 6).sin().prod(1, keepdim=True)
    kept = []

    def closure():
        optimizer.zero_grad()
        loss = functional.mse_loss(model(points), wanted)
        loss.backward()
        kept[:] = [loss.detach()]
        return loss

    while True:
        optimizer.step(closure)
        if not go_on(kept[0]):
            break


def augment_image_by_image():
    """Flip, crop, scale and normalise on the device, one image after the other."""
    model = on_device(models.light_convolutions())
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    side = size(128, 16)
    pool = torch.randint(0, 256, (size(256, 8), 3, side, side), dtype=torch.uint8,
                         device=loop.DEVICE)
    targets = torch.randint(0, 10, (size(64, 4),), device=loop.DEVICE)
    generator = torch.Generator().manual_seed(0)
    while True:
        changed = []
        picks = torch.randint(0, len(pool), (len(targets),), generator=generator).tolist()
        for pick in picks:
            image = pool[pick].float() / 255
            if pick % 2:
                image = image.flip(2)
            top = pick % (side // 4)
            image = image[:, top:top + 3 * side // 4, top:top + 3 * side // 4]
            image = functional.interpolate(image[None], size=(side, side), mode="bilinear")
            changed.append((image - 0.45) / 0.25)
        loss = functional.cross_entropy(model(torch.cat(changed)), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            break


JOBS = [lstm_loop, rl_loop, message_passing, geometric, sparse_embeddings, lbfgs,
        augment_image_by_image]

if __name__ == "__main__":
    loop.main(JOBS)
