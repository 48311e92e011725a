"""Models of the ordinary jobs, written as people write them."""

import math

import torch
import torch.nn.functional as functional
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary, width, heads, layers, length, checkpointing=False):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.checkpointing = checkpointing

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        return self.head(self.norm(x))


def language_loss(model, tokens, targets):
    return functional.cross_entropy(model(tokens).flatten(0, 1).float(), targets.flatten())


class Residual(nn.Module):
    def __init__(self, inputs, outputs, embedding):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, inputs), nn.Conv2d(inputs, outputs, 3, 1, 1)
        self.time = nn.Linear(embedding, outputs)
        self.norm2, self.conv2 = nn.GroupNorm(8, outputs), nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(functional.silu(self.norm1(x)))
        y = y + self.time(functional.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(functional.silu(self.norm2(y)))


class UNet(nn.Module):
    """Noise prediction for diffusion: three levels down, three up, time embedding."""

    def __init__(self, width=64):
        super().__init__()
        self.width, embedding = width, 4 * width
        self.time = nn.Sequential(nn.Linear(width, embedding), nn.SiLU(),
                                  nn.Linear(embedding, embedding))
        widths = [width, 2 * width, 4 * width]
        self.first = nn.Conv2d(3, width, 3, 1, 1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        inputs = width
        for outputs in widths:
            self.down.append(nn.ModuleList([Residual(inputs, outputs, embedding),
                                            Residual(outputs, outputs, embedding),
                                            nn.Conv2d(outputs, outputs, 3, 2, 1)]))
            inputs = outputs
        self.middle = Residual(inputs, inputs, embedding)
        for outputs in reversed(widths):
            self.up.append(nn.ModuleList([Residual(inputs + outputs, outputs, embedding),
                                          Residual(outputs, outputs, embedding)]))
            inputs = outputs
        self.last = nn.Sequential(nn.GroupNorm(8, inputs), nn.SiLU(), nn.Conv2d(inputs, 3, 3, 1, 1))

    def embed(self, moment):
        half = self.width // 2
        rates = torch.exp(-math.log(1e4) * torch.arange(half, device=moment.device) / half)
        angles = moment[:, None].float() * rates[None]
        return self.time(torch.cat([angles.sin(), angles.cos()], 1))

    def forward(self, x, moment):
        time = self.embed(moment)
        x, kept = self.first(x), []
        for one, two, shrink in self.down:
            x = two(one(x, time), time)
            kept.append(x)
            x = shrink(x)
        x = self.middle(x, time)
        for one, two in self.up:
            skip = kept.pop()
            x = functional.interpolate(x, size=skip.shape[2:], mode="nearest")
            x = two(one(torch.cat([x, skip], 1), time), time)
        return self.last(x)


def perceptron(*widths, activation=nn.ReLU):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1])


def light_convolutions(classes=10, stride=4):
    return nn.Sequential(nn.Conv2d(3, 64, 7, stride), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(64, classes))
