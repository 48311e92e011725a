"""Ordinary jobs: language models, from a tiny one to one that fills the GPU."""

import os
import shutil
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

import loop
import models
from loop import go_on, on_device, size


class Tokens(Dataset):
    """Windows of one long random text."""

    def __init__(self, vocabulary, length):
        self.length = length
        self.text = torch.randint(0, vocabulary, (size(2_000_000, 20_000),))

    def __len__(self):
        return size(200_000, 400)

    def __getitem__(self, index):
        at = (index * 7919) % (len(self.text) - self.length - 1)
        return self.text[at:at + self.length], self.text[at + 1:at + self.length + 1]


def train(batch, length, width, heads, layers, vocabulary=50257, compiled=None, half=True,
          accumulate=1, workers=2, evaluate_every=0, clip=True, checkpointing=False, wrap=None):
    if loop.ARGS.tiny:
        batch, length, width, heads, layers, vocabulary = 2, 16, 16, 2, 2, 50
    model = on_device(models.Gpt(vocabulary, width, heads, layers, length, checkpointing))
    if compiled and loop.cuda():
        model = torch.compile(model, mode=compiled)
    if wrap:
        model = wrap(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    scaler = torch.amp.GradScaler(loop.DEVICE.type, enabled=half and loop.cuda())
    data = Tokens(vocabulary, length)
    batches = DataLoader(data, batch, shuffle=True, num_workers=workers, pin_memory=loop.cuda(),
                         persistent_workers=workers > 0)
    held_out = DataLoader(Subset(data, range(10 * batch)), batch)
    for number, (tokens, targets) in enumerate(batches, 1):
        tokens = tokens.to(loop.DEVICE, non_blocking=True)
        targets = targets.to(loop.DEVICE, non_blocking=True)
        with loop.low_precision(torch.float16 if half and loop.cuda() else torch.bfloat16):
            loss = models.language_loss(model, tokens, targets) / accumulate
        scaler.scale(loss).backward()
        if number % accumulate:
            continue
        if clip:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        if number % (10 * accumulate) == 0:
            print(number, loss.item(), flush=True)
        if not go_on(loss):
            break
        if evaluate_every and number % evaluate_every == 0:
            evaluate(model, held_out)


def evaluate(model, batches):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for tokens, targets in batches:
            total += models.language_loss(model, tokens.to(loop.DEVICE),
                                          targets.to(loop.DEVICE)).item()
    model.train()
    print("held out", total, flush=True)


def gpt2():
    train(8, 512, 768, 12, 12)


def gpt2_bf16_accum():
    train(4, 512, 768, 12, 12, half=False, accumulate=4)


def accumulate_large():
    """Four times that micro batch, two of them a step: the device is the limit."""
    train(16, 512, 768, 12, 12, half=False, accumulate=2)


def tiny_lm():
    train(4, 64, 128, 4, 6, vocabulary=1000)


def tiny_lm_noscaler():
    train(4, 64, 128, 4, 6, vocabulary=1000, half=False, clip=False)


def tiny_lm_compiled():
    train(4, 64, 128, 4, 6, vocabulary=1000, half=False, compiled="default")


def tiny_lm_cudagraphs():
    train(4, 64, 128, 4, 6, vocabulary=1000, half=False, compiled="reduce-overhead", workers=0)


def lm_eval():
    train(16, 256, 384, 6, 6, evaluate_every=40)


def activation_checkpoints():
    train(32, 512, 1024, 16, 12, half=False, checkpointing=True)


def scaler_and_clip_large():
    """fp16, GradScaler (it reads found_inf every step) and clipping, device-bound."""
    train(32, 512, 1024, 16, 8)


def ddp_one_rank():
    meeting = tempfile.mkdtemp(prefix="ordinary")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.distributed.init_process_group("nccl" if loop.cuda() else "gloo", rank=0, world_size=1,
                                         init_method="file://%s/store" % meeting)
    train(32, 512, 1024, 16, 8, half=False, wrap=nn.parallel.DistributedDataParallel)
    torch.distributed.destroy_process_group()
    shutil.rmtree(meeting)


def clip_each_parameter():
    """Clipping in a loop, one parameter after the other, of a tiny model."""
    model = on_device(models.Gpt(size(1000, 50), size(128, 16), 4, size(6, 2), 64))
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4, fused=loop.cuda())
    tokens = torch.randint(0, size(1000, 50), (64, 8, 65), device=loop.DEVICE)
    while True:
        batch = tokens[loop.steps() % 64]
        loss = models.language_loss(model, batch[:, :-1], batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            nn.utils.clip_grad_norm_([parameter], 1.0)
        optimizer.step()
        if not go_on(loss):
            break


def masked_words():
    """Masked language model: the loss is taken at a boolean mask, whose size the host waits for."""
    width = size(384, 16)
    model = on_device(models.Gpt(size(30000, 50), width, 4, size(6, 2), 256))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    tokens = torch.randint(1, size(30000, 50), (16, size(16, 2), size(256, 16)),
                           device=loop.DEVICE)
    while True:
        clean = tokens[loop.steps() % 16]
        mask = torch.rand(clean.shape, device=loop.DEVICE) < 0.15
        with loop.low_precision():
            logits = model(clean.masked_fill(mask, 0))
        loss = nn.functional.cross_entropy(logits[mask].float(), clean[mask])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            break


JOBS = [gpt2, gpt2_bf16_accum, accumulate_large, tiny_lm, tiny_lm_noscaler, tiny_lm_compiled,
        tiny_lm_cudagraphs, lm_eval, activation_checkpoints, scaler_and_clip_large, ddp_one_rank,
        clip_each_parameter, masked_words]

if __name__ == "__main__":
    loop.main(JOBS)
