"""A job of the tests whose whole output must not depend on the recorder: losses bit for bit,
warnings with their lines, tracebacks, what pickle and inspect see."""

import gc
import inspect
import io
import pickle
import sys
import traceback
import warnings

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Points(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        if index == self.bad:
            raise KeyError("no sample %d" % index)
        return torch.randn(8) + index, torch.tensor(index % 3)

    bad = -1


class TooLong(IterableDataset):
    def __len__(self):
        return 2

    def __iter__(self):
        yield from range(4)


def losses(workers):
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    loader = DataLoader(Points(), batch_size=8, shuffle=True, num_workers=workers)
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            print(loss.item().hex())
        schedule.step()
    target = io.BytesIO()
    torch.save(model.state_dict(), target)
    print(sum(target.getvalue()[:0]), sorted(model.state_dict()))


def failures(workers):
    data = Points()
    data.bad = 11
    try:
        for _ in DataLoader(data, batch_size=4, num_workers=workers):
            pass
    except KeyError:
        traceback.print_exc(file=sys.stdout)
    try:
        torch.save(lambda: 0, io.BytesIO())
    except Exception:
        traceback.print_exc(file=sys.stdout)


def stack_of_a_sample():
    class Looks(Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            return [f.function for f in inspect.stack()[:6]]

    print(next(iter(DataLoader(Looks(), batch_size=None, collate_fn=lambda x: x))))


def main():
    losses(0)
    losses(2)
    failures(0)
    failures(1)  # with more workers the traceback depends on which of them is first
    warnings.simplefilter("always")
    loader = DataLoader(TooLong(), batch_size=1)
    len(loader)
    list(loader)
    stack_of_a_sample()
    iterator = iter(DataLoader(Points()))
    print(inspect.signature(DataLoader.__init__), type(iterator).__name__, len(iterator))
    print(inspect.signature(torch.utils.data._utils.worker._worker_loop))
    print(pickle.loads(pickle.dumps(torch.utils.data._utils.worker._worker_loop)).__qualname__)
    print(pickle.loads(pickle.dumps(torch.save)) is torch.save,
          pickle.loads(pickle.dumps(torch.autograd.backward)) is torch.autograd.backward)
    print(len(pickle.dumps(DataLoader(Points()))) > 0, sorted(vars(DataLoader(Points()))))
    print(inspect.getsource(torch.utils.data.dataloader).count("class "),
          type(torch.utils.data.dataloader.__spec__.loader).__name__)
    print(sys.getprofile(), sys.gettrace(), gc.isenabled())
    if hasattr(torch, "compile"):
        compiled = torch.compile(torch.nn.Linear(4, 4), backend="eager", fullgraph=True)
        optimizer = torch.optim.SGD(compiled.parameters(), 0.1)
        torch.manual_seed(3)
        for _ in range(3):
            optimizer.zero_grad()
            loss = compiled(torch.randn(2, 4)).sum()
            loss.backward()
            optimizer.step()
        from torch._dynamo.utils import counters
        print(dict(counters["graph_break"]), counters["stats"]["unique_graphs"])
        print(len(pickle.dumps(compiled)) > 0)


if __name__ == "__main__":
    main()
