"""Copies the next batch on a side stream while this one computes."""

import torch


def ahead(job, batches, count):
    """Yields `count` batches on the device; `batches` are pinned host tensors."""
    if not job.cuda:
        for i in range(count):
            yield batches[i % len(batches)].to(job.device)
        return
    side = torch.cuda.Stream()

    def load(i):
        done = torch.cuda.Event()
        with torch.cuda.stream(side):
            batch = batches[i % len(batches)].to(job.device, non_blocking=True)
            done.record(side)
        return batch, done

    following = load(0)
    for i in range(count):
        batch, done = following
        if i + 1 < count:
            following = load(i + 1)
        current = torch.cuda.current_stream()
        current.wait_event(done)
        batch.record_stream(current)
        yield batch
