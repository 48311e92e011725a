"""Ordinary jobs: where the batches come from is what matters."""

import io
import multiprocessing
import queue
import random
import shutil
import tarfile
import tempfile
import threading
import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

import loop
import models
from loop import go_on, on_device, size


def classifier(inputs=None, classes=10):
    if inputs:
        model = models.perceptron(inputs, 512, 512, classes)
    else:
        from harness import ResNet18
        model = ResNet18(size(64, 4), classes)
    model = on_device(model)
    return model, torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)


def train(batches, model, optimizer, pinned=True):
    """One pass; returns False when the job is over."""
    for inputs, targets in batches:
        inputs = inputs.to(loop.DEVICE, non_blocking=pinned)
        targets = targets.to(loop.DEVICE, non_blocking=pinned)
        with loop.low_precision():
            loss = nn.functional.cross_entropy(model(inputs).float(), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            return False
    return True


def scratch():
    return tempfile.mkdtemp(prefix="ordinary")


# ---- files ----------------------------------------------------------------


class Shards(IterableDataset):
    """Images in tar files, each member deflated; every worker has its own shards."""

    def __init__(self, paths, side):
        self.paths, self.side = paths, side

    def __iter__(self):
        worker = get_worker_info()
        mine = self.paths[worker.id::worker.num_workers] if worker else self.paths
        while True:
            for path in mine:
                with tarfile.open(path) as tar:
                    for number, member in enumerate(tar):
                        raw = zlib.decompress(tar.extractfile(member).read())
                        image = np.frombuffer(raw, np.uint8).reshape(3, self.side, self.side)
                        image = image.astype(np.float32) / 255.0
                        if random.random() < 0.5:
                            image = image[:, :, ::-1]
                        image = (image - 0.45) / 0.25
                        yield torch.from_numpy(np.ascontiguousarray(image)), number % 10


def tar_shards():
    folder, side = scratch(), size(224, 16)
    rows = np.random.default_rng(0).integers(0, 64, (32, 3, side, side), dtype=np.uint8)
    packed = [zlib.compress(image.tobytes(), 1) for image in rows]
    paths = []
    for shard in range(8):
        paths.append("%s/%d.tar" % (folder, shard))
        with tarfile.open(paths[-1], "w") as tar:
            for number in range(size(96, 8)):
                info = tarfile.TarInfo("%d.z" % number)
                info.size = len(packed[number % 32])
                tar.addfile(info, io.BytesIO(packed[number % 32]))
    batches = DataLoader(Shards(paths, side), size(64, 4), num_workers=2,
                         pin_memory=loop.cuda())
    train(batches, *classifier())
    shutil.rmtree(folder)


class CsvRows(Dataset):
    def __init__(self, path):
        with open(path) as file:
            self.lines = file.read().splitlines()

    def __len__(self):
        return 100 * len(self.lines)

    def __getitem__(self, index):
        values = [float(v) for v in self.lines[index % len(self.lines)].split(",")]
        return torch.tensor(values[1:]), int(values[0]) % 10


def csv_rows():
    folder, columns = scratch(), size(256, 16)
    rows = np.random.default_rng(0).standard_normal((2000, columns + 1)) * 10
    rows[:, 0] = np.abs(rows[:, 0])
    np.savetxt(folder + "/table.csv", rows, delimiter=",", fmt="%.5f")
    batches = DataLoader(CsvRows(folder + "/table.csv"), size(512, 16), shuffle=True,
                         num_workers=2, pin_memory=loop.cuda())
    train(batches, *classifier(columns))
    shutil.rmtree(folder)


class Mapped(Dataset):
    def __init__(self, path, shape):
        self.rows = np.memmap(path, np.float32, "r", shape=shape)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.from_numpy(self.rows[index].copy()), index % 10


def memmap_shuffle():
    """Rows of a memory-mapped array, one by one, in the main process."""
    folder, shape = scratch(), (size(100_000, 500), size(256, 16))
    path = folder + "/rows.bin"
    np.random.default_rng(0).standard_normal(shape, dtype=np.float32).tofile(path)
    batches = DataLoader(Mapped(path, shape), size(1024, 16), shuffle=True)
    model, optimizer = classifier(shape[1])
    while train(batches, model, optimizer, pinned=False):
        pass
    shutil.rmtree(folder)


class OneFile(Dataset):
    """A compressed container that only one process may read at a time, as some HDF5 builds."""

    def __init__(self, path, lock, entries, side):
        self.path, self.lock, self.entries, self.side = path, lock, entries, side
        self.file = None

    def __len__(self):
        return 100 * len(self.entries)

    def __getitem__(self, index):
        with self.lock:
            if self.file is None:
                self.file = open(self.path, "rb")
            begin, length = self.entries[index % len(self.entries)]
            self.file.seek(begin)
            raw = zlib.decompress(self.file.read(length))
        image = np.frombuffer(raw, np.uint8).reshape(3, self.side, self.side)
        return torch.from_numpy(image.astype(np.float32) / 255), index % 10


def locked_file():
    folder, side = scratch(), size(224, 16)
    random_bytes = np.random.default_rng(0)
    entries, at = [], 0
    with open(folder + "/one.bin", "wb") as file:
        for _ in range(size(64, 8)):
            image = random_bytes.integers(0, 64, (3, side, side), dtype=np.uint8)
            packed = zlib.compress(image.tobytes(), 1)
            entries.append((at, len(packed)))
            at += file.write(packed)
    data = OneFile(folder + "/one.bin", multiprocessing.Lock(), entries, side)
    batches = DataLoader(data, size(64, 4), shuffle=True, num_workers=4, pin_memory=loop.cuda())
    train(batches, *classifier())
    shutil.rmtree(folder)


def jpeg(workers, batch):
    import torchvision
    from PIL import Image
    folder = scratch()
    noise = np.random.default_rng(0)
    for number in range(size(256, 8)):
        small = noise.integers(0, 255, (75, 100, 3), dtype=np.uint8)
        Image.fromarray(np.kron(small, np.ones((5, 5, 1), np.uint8))).save(
            "%s/%d.jpg" % (folder, number), quality=90)
    change = torchvision.transforms.Compose([
        torchvision.transforms.RandomResizedCrop(224),
        torchvision.transforms.RandomHorizontalFlip(),
        torchvision.transforms.ColorJitter(0.4, 0.4, 0.4), torchvision.transforms.ToTensor(),
        torchvision.transforms.Normalize([0.5] * 3, [0.25] * 3)])

    class Images(Dataset):
        def __len__(self):
            return 100_000

        def __getitem__(self, index):
            with Image.open("%s/%d.jpg" % (folder, index % size(256, 8))) as image:
                return change(image.convert("RGB")), index % 1000

    model = on_device(torchvision.models.resnet50()).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    train(DataLoader(Images(), size(batch, 2), shuffle=True, num_workers=workers,
                     pin_memory=loop.cuda()), model, optimizer)
    shutil.rmtree(folder)


def jpeg_w0():
    jpeg(0, 32)


def jpeg_w4():
    jpeg(4, 64)


# ---- DataLoader settings --------------------------------------------------


def workers_every_epoch():
    """Twelve workers for a data set of ten batches; they end and start with each epoch."""
    data = TensorDataset(torch.randn(size(640, 32), 3, size(64, 16), size(64, 16)),
                         torch.randint(0, 10, (size(640, 32),)))
    model, optimizer = classifier()
    while train(DataLoader(data, size(64, 8), shuffle=True, num_workers=size(12, 2),
                           pin_memory=loop.cuda()), model, optimizer):
        pass


class LargeImages(Dataset):
    def __init__(self, side):
        self.images = torch.randn(64, 3, side, side)

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        return self.images[index % 64], index % 10


def unpinned_large():
    """Large float batches from workers, without pin_memory, to a light model."""
    model = on_device(models.light_convolutions())
    batches = DataLoader(LargeImages(size(224, 16)), size(64, 4), shuffle=True, num_workers=4)
    train(batches, model, torch.optim.SGD(model.parameters(), 0.01), pinned=False)


class Sentences(Dataset):
    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        return [(index * 31 + k * 17) % 5000 for k in range(40 + index % 160)]


def pad_and_augment(sentences):
    """Drops, swaps and pads words in Python, sample by sample."""
    longest, rows = 200, []
    for words in sentences:
        kept = [w for w in words if random.random() > 0.1]
        for k in range(0, len(kept) - 1, 4):
            kept[k], kept[k + 1] = kept[k + 1], kept[k]
        rows.append(torch.tensor((kept + [0] * longest)[:longest]))
    return torch.stack(rows), torch.tensor([len(s) % 10 for s in sentences])


def heavy_collate():
    model = on_device(nn.Sequential(nn.EmbeddingBag(5000, 256), nn.Linear(256, 256), nn.ReLU(),
                                    nn.Linear(256, 10)))
    batches = DataLoader(Sentences(), size(512, 16), shuffle=True, num_workers=2,
                         collate_fn=pad_and_augment, pin_memory=loop.cuda())
    train(batches, model, torch.optim.Adam(model.parameters()))


# ---- loaders written by hand ----------------------------------------------


def train_from(get, model, optimizer):
    while True:
        inputs = get().to(loop.DEVICE)
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not go_on(loss):
            break


class Feeder:
    """A queue that a thread fills."""

    def __init__(self, make):
        self.make, self.batches, self.over = make, queue.Queue(2), False
        self.thread = threading.Thread(target=self._feed)

    def _feed(self):
        while not self.over:
            self.batches.put(self.make())

    def __enter__(self):
        self.thread.start()
        return self.batches

    def __exit__(self, *_):
        self.over = True
        while self.thread.is_alive():  # it may be waiting for room
            try:
                self.batches.get(timeout=0.1)
            except queue.Empty:
                pass


def linear_stack():
    width = size(1024, 16)
    model = on_device(nn.Sequential(*[nn.Linear(width, width) for _ in range(6)]))
    return width, model, torch.optim.SGD(model.parameters(), 0.01)


def own_thread_loader():
    """A feeder thread in pure Python: it holds the interpreter lock that training needs."""
    width, model, optimizer = linear_stack()

    def make():
        total = 0
        for i in range(size(300_000, 1000)):
            total += i * i
        return torch.randn(64, width)

    with Feeder(make) as batches:
        train_from(batches.get, model, optimizer)


def own_thread_waits():
    """A feeder thread that waits for a slow source; the loop waits in Queue.get()."""
    width, model, optimizer = linear_stack()

    def make():
        time.sleep(size(0.02, 0.001))
        return torch.randn(64, width)

    with Feeder(make) as batches:
        train_from(batches.get, model, optimizer)


def feed_process(batches, width, rounds):
    generator = np.random.default_rng(0)
    while True:
        total = 0
        for i in range(rounds):
            total += i * i
        batches.put(generator.standard_normal((64, width), dtype=np.float32))


def own_process_loader():
    """A feeder process and a multiprocessing.Queue of NumPy arrays."""
    width, model, optimizer = linear_stack()
    batches = multiprocessing.Queue(2)
    feeder = multiprocessing.Process(target=feed_process,
                                     args=(batches, width, size(300_000, 1000)), daemon=True)
    feeder.start()
    train_from(lambda: torch.from_numpy(batches.get()), model, optimizer)
    feeder.terminate()


JOBS = [tar_shards, csv_rows, memmap_shuffle, locked_file, jpeg_w0, jpeg_w4, workers_every_epoch,
        unpinned_large, heavy_collate, own_thread_loader, own_thread_waits, own_process_loader]

if __name__ == "__main__":
    loop.main(JOBS)
