"""A small image-like training job, to try idlescope on: plain PyTorch, nothing of ours.

Pictures are made from their index (no download), then augmented on the CPU as an image
pipeline would; a small convolutional network learns to tell four patterns apart. With the
default of two loader workers the GPU of any recent machine waits for data. Without a GPU it
trains on the CPU.

  idlescope record -- python examples/train.py
  idlescope record -- python examples/train.py --workers 8
"""

import argparse
import math
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Patterns(Dataset):
    """Stripes in four directions, each item a function of its index alone."""

    def __init__(self, count, size, augment_rounds):
        self.count = count
        self.size = size
        self.augment_rounds = augment_rounds
        line = torch.linspace(-1, 1, size)
        self.y, self.x = torch.meshgrid(line, line, indexing="ij")

    def __len__(self):
        return self.count

    def decode(self, index):
        label = index % 4
        angle = label * math.pi / 4
        wave = torch.sin(20 * (self.x * math.cos(angle) + self.y * math.sin(angle)))
        generator = torch.Generator().manual_seed(index)
        noise = torch.randn(3, self.size, self.size, generator=generator)
        return wave.expand(3, -1, -1) + 3 * noise, label

    def augment(self, image):
        # Blur and renormalise a few times: work of the size of a real augmentation.
        for _ in range(self.augment_rounds):
            image = nn.functional.avg_pool2d(image[None], 3, stride=1, padding=1)[0]
            image = (image - image.mean()) / (image.std() + 1e-6)
        return image

    def __getitem__(self, index):
        image, label = self.decode(index)
        return self.augment(image), label


def network(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 5, stride=2), nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, stride=2), nn.ReLU(),
        nn.Conv2d(2 * width, 2 * width, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, 4))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--size", type=int, default=64, help="pixels a side")
    parser.add_argument("--augment", type=int, default=6, help="rounds of augmentation")
    parser.add_argument("--width", type=int, default=8, help="channels of the network")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    # Workers and this process share the cores; one thread here leaves them room.
    if device.type == "cpu":
        torch.set_num_threads(1)
    data = Patterns(options.batch * options.steps, options.size, options.augment)
    loader = DataLoader(data, batch_size=options.batch, shuffle=True, num_workers=options.workers,
                        pin_memory=device.type == "cuda")
    model = network(options.width).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    began = time.perf_counter()
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    seconds = time.perf_counter() - began
    print(f"{options.steps} steps on {device} in {seconds:.1f} s, last loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
