"""Ordinary jobs: the device is the limit, or plain host code is, or a framework runs the loop."""

import gc
import tempfile

import numpy as np
import torch
import torch.nn.functional as functional
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import loop
import models
from loop import go_on, on_device, size


def repeat(model, optimizer, inputs, loss_of):
    while True:
        loss = loss_of(model(inputs))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            break


def large_matmuls():
    """fp32 products without TF32."""
    width = size(4096, 32)
    model = on_device(models.perceptron(width, width, width, width))
    inputs = torch.randn(width, width, device=loop.DEVICE)
    repeat(model, torch.optim.SGD(model.parameters(), 1e-3), inputs, lambda y: y.square().mean())


def vision_transformer():
    width = size(384, 16)
    layer = nn.TransformerEncoderLayer(width, 6 if width == 384 else 2, 4 * width, 0.0,
                                       batch_first=True, norm_first=True)
    model = on_device(nn.Sequential(nn.Conv2d(3, width, 16, 16), nn.Flatten(2),
                                    Transposed(), nn.TransformerEncoder(layer, size(12, 2)),
                                    Pooled(), nn.Linear(width, 1000)))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=loop.cuda())
    images = torch.randn(size(1024, 2), 3, size(224, 32), size(224, 32), device=loop.DEVICE)
    targets = torch.randint(0, 1000, (len(images),), device=loop.DEVICE)
    with loop.low_precision():
        repeat(model, optimizer, images,
               lambda y: functional.cross_entropy(y.float(), targets))


class Transposed(nn.Module):
    def forward(self, x):
        return x.transpose(1, 2)


class Pooled(nn.Module):
    def forward(self, x):
        return x.mean(1)


def compiled_default():
    """torch.compile with its default mode; point-wise work that it joins."""
    width = size(4096, 16)
    model = on_device(models.perceptron(width, width, width, width, activation=nn.GELU))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=loop.cuda())
    inputs = torch.randn(size(8192, 8), width, device=loop.DEVICE)
    run = torch.compile(model) if loop.cuda() else model
    with loop.low_precision():
        repeat(run, optimizer, inputs, lambda y: y.float().square().mean())


def numpy_augment_main():
    """Noise from NumPy in the loop, no DataLoader."""
    model = on_device(nn.Sequential(nn.Conv2d(3, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2),
                                    nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                    nn.Linear(64, 10)))
    optimizer = torch.optim.Adam(model.parameters())
    random = np.random.default_rng(0)
    images, labels = random.random((2000, 3, 64, 64), np.float32), random.integers(0, 10, 2000)
    while True:
        picks = random.integers(0, 2000, size(64, 4))
        batch = images[picks]
        if loop.steps() % 2:
            batch = np.flip(batch, 3)
        batch = batch + random.standard_normal(batch.shape).astype(np.float32) * 0.1
        inputs = torch.from_numpy(np.ascontiguousarray(batch)).to(loop.DEVICE)
        loss = functional.cross_entropy(model(inputs),
                                        torch.from_numpy(labels[picks]).to(loop.DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loop.steps() % 50 == 0:
            print(loss.item(), flush=True)
        if not go_on(loss):
            break


def empty_cache_each():
    width = size(2048, 16)
    model = on_device(nn.Sequential(*[nn.Linear(width, width) for _ in range(8)]))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    inputs = torch.randn(size(512, 8), width, device=loop.DEVICE)
    while True:
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gc.collect()
        if loop.cuda():
            torch.cuda.empty_cache()
        if not go_on(loss):
            break


def hf_trainer():
    import transformers
    config = transformers.BertConfig(hidden_size=256, num_hidden_layers=size(4, 1),
                                     num_attention_heads=4, intermediate_size=1024,
                                     vocab_size=5000)

    class Texts(Dataset):
        def __len__(self):
            return 100_000

        def __getitem__(self, index):
            words = torch.Generator().manual_seed(index)
            return {"input_ids": torch.randint(0, 5000, (128,), generator=words),
                    "attention_mask": torch.ones(128, dtype=torch.long), "labels": index % 2}

    class Stop(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            control.should_training_stop = not go_on()

    options = transformers.TrainingArguments(
        tempfile.mkdtemp(prefix="ordinary"), per_device_train_batch_size=size(32, 2),
        bf16=loop.cuda(), report_to=[], logging_steps=10, save_strategy="no", max_steps=100_000,
        dataloader_num_workers=0, use_cpu=not loop.cuda())
    transformers.Trainer(transformers.BertForSequenceClassification(config), options,
                         train_dataset=Texts(), callbacks=[Stop()]).train()


def lightning():
    import pytorch_lightning

    class Digits(pytorch_lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = models.perceptron(784, 512, 512, 10)

        def training_step(self, batch, _):
            loss = functional.cross_entropy(self.model(batch[0]), batch[1])
            self.log("loss", loss, prog_bar=True)
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

        def on_train_batch_end(self, *_):
            if not go_on():
                self.trainer.should_stop = True

    data = TensorDataset(torch.randn(size(60000, 640), 784),
                         torch.randint(0, 10, (size(60000, 640),)))
    pytorch_lightning.Trainer(
        accelerator="gpu" if loop.cuda() else "cpu", devices=1, max_epochs=1000, logger=False,
        enable_checkpointing=False, min_steps=1, min_epochs=0).fit(
            Digits(), DataLoader(data, 64, shuffle=True, num_workers=size(4, 1),
                                 persistent_workers=True))


def timm_synth():
    import timm
    model = on_device(timm.create_model("vit_small_patch16_224"))
    images = torch.randn(size(128, 2), 3, 224, 224, device=loop.DEVICE)
    targets = torch.randint(0, 1000, (len(images),), device=loop.DEVICE)
    with loop.low_precision():
        repeat(model, torch.optim.AdamW(model.parameters()), images,
               lambda y: functional.cross_entropy(y.float(), targets))


JOBS = [large_matmuls, vision_transformer, compiled_default, numpy_augment_main,
        empty_cache_each, hf_trainer, lightning, timm_synth]

if __name__ == "__main__":
    loop.main(JOBS)
