"""Ordinary jobs: diffusion and adversarial training."""

import torch
import torch.nn.functional as functional
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import loop
import models
from loop import go_on, on_device, size


def diffusion(batch, side, width):
    model = on_device(models.UNet(width))
    average = on_device(models.UNet(width)).requires_grad_(False)
    average.load_state_dict(model.state_dict())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000, device=loop.DEVICE), 0)
    data = TensorDataset(torch.randn(size(2048, 32), 3, side, side))
    while True:
        for (clean,) in DataLoader(data, batch, shuffle=True, drop_last=True, num_workers=2,
                                   pin_memory=loop.cuda()):
            clean = clean.to(loop.DEVICE, non_blocking=True)
            moment = torch.randint(0, 1000, (batch,), device=loop.DEVICE)
            noise = torch.randn_like(clean)
            share = kept[moment][:, None, None, None]
            with loop.low_precision():
                found = model(share.sqrt() * clean + (1 - share).sqrt() * noise, moment)
            loss = functional.mse_loss(found.float(), noise)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for slow, now in zip(average.parameters(), model.parameters()):
                    slow.mul_(0.999).add_(now, alpha=0.001)
            if not go_on(loss):
                return


def unet_ema():
    """Small images and an average of the weights taken parameter by parameter."""
    diffusion(size(16, 2), size(32, 8), size(64, 8))


def unet_ema_large():
    """The same with work enough for the device."""
    diffusion(size(64, 2), size(64, 8), size(128, 8))


def gan():
    generator = on_device(models.perceptron(64, 512, 1024, 784))
    judge = on_device(models.perceptron(784, 1024, 512, 1, activation=lambda: nn.LeakyReLU(0.2)))
    of_generator = torch.optim.Adam(generator.parameters(), 2e-4)
    of_judge = torch.optim.Adam(judge.parameters(), 2e-4)
    data = TensorDataset(torch.randn(size(60000, 640), 784))
    while True:
        for (real,) in DataLoader(data, 64, shuffle=True, drop_last=True):
            real = real.to(loop.DEVICE)
            hidden = torch.randn(64, 64, device=loop.DEVICE)
            fake = generator(hidden)
            judged = functional.softplus(-judge(real)).mean()
            judged = judged + functional.softplus(judge(fake.detach())).mean()
            of_judge.zero_grad()
            judged.backward()
            of_judge.step()
            loss = functional.softplus(-judge(generator(hidden))).mean()
            of_generator.zero_grad()
            loss.backward()
            of_generator.step()
            if loop.steps() % 100 == 0:
                print(judged.item(), loss.item(), flush=True)
            if not go_on(loss):
                return


JOBS = [unet_ema, unet_ema_large, gan]

if __name__ == "__main__":
    loop.main(JOBS)
