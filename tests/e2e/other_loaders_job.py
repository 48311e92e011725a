"""A job of the tests: loaders of other packages and the pin-memory thread. Arguments: case
names. Prints the number of batches of each, null where the package is missing."""

import importlib
import json
import os
import queue
import sys
import threading
import types

import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.tensor(index)


def stateful():
    from torchdata.stateful_dataloader import StatefulDataLoader
    out = 0
    for workers in (0, 2):
        out += sum(1 for _ in StatefulDataLoader(Numbers(), batch_size=2, num_workers=workers))
    return out


def nodes():
    from torchdata.nodes import Batcher, IterableWrapper, Loader
    return sum(1 for _ in Loader(Batcher(IterableWrapper(range(12)), batch_size=3)))


def webdataset():
    import io
    import tarfile

    import webdataset
    with tarfile.open("shard.tar", "w") as tar:
        for i in range(8):
            info = tarfile.TarInfo("%03d.txt" % i)
            data = b"x%d" % i
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    data = webdataset.WebDataset("shard.tar", shardshuffle=False).decode().to_tuple("txt")
    return sum(1 for _ in webdataset.WebLoader(data, batch_size=2, num_workers=1))


def foreign():
    # A stand-in of the test's: a module and an iterator class with another library's names.
    name, iterator = os.environ["FOREIGN_ITERATOR"].rsplit(".", 1)
    cls = getattr(importlib.import_module(name), iterator)
    out = 0
    for _ in cls(5):
        out += 1
    return out


def tensorflow():
    import tensorflow as tf
    out = 0
    for _ in tf.data.Dataset.range(10).batch(2):
        out += 1
    return out


def jax():
    # JAX has no loader of its own; its users take PyTorch's.
    import jax.numpy
    out = 0
    for batch in DataLoader(Numbers(), batch_size=2):
        jax.numpy.asarray(batch.numpy()).sum().block_until_ready()
        out += 1
    return out


def grain():
    import grain.python as grain
    loader = grain.DataLoader(
        data_source=range(12), operations=[grain.Batch(2)],
        sampler=grain.SequentialSampler(num_records=12, shard_options=grain.NoSharding()))
    out = 0
    for _ in loader:
        out += 1
    return out


def pin():
    # PyTorch's own pin-memory thread function; without a GPU only its device calls are faked.
    from torch.utils.data import _utils
    if hasattr(torch, "accelerator"):
        torch.accelerator.set_device_index = lambda index: None
    else:
        torch.cuda.set_device = lambda index: None
    torch.Tensor.pin_memory = lambda self, *device: self
    source, target, done = queue.Queue(), queue.Queue(), threading.Event()
    names = _utils.pin_memory._pin_memory_loop.__wrapped__.__code__.co_varnames[:5] \
        if hasattr(_utils.pin_memory._pin_memory_loop, "__wrapped__") else ()
    arguments = (source, target, 0, done, "cuda") if len(names) != 4 else (source, target, 0, done)
    thread = threading.Thread(target=_utils.pin_memory._pin_memory_loop, args=arguments,
                              daemon=True)
    thread.start()
    for index in range(4):
        source.put((index, torch.ones(1000)))
    got = [target.get(timeout=30)[0] for _ in range(4)]
    done.set()
    return len(got)


def main():
    done = {}
    for name in sys.argv[1:]:
        try:
            done[name] = globals()[name]()
        except ImportError:
            done[name] = None
    print(json.dumps(done))


if __name__ == "__main__":
    main()
