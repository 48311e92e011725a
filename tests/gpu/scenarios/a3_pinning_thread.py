"""A3: another thread pins and unpins 256 MB all the time; launches wait for the driver's lock.

Fix A: it pins the memory once."""

import threading
import time

import torch

import harness


def pin(memory, stop, once):
    runtime = torch.cuda.cudart()
    pointer, size = memory.data_ptr(), memory.numel()
    while not stop.is_set():
        runtime.cudaHostRegister(pointer, size, 0)
        if once:
            stop.wait()
        time.sleep(0.001)
        runtime.cudaHostUnregister(pointer)


def main():
    job = harness.Job("A3", "pinning_thread")
    trainer = harness.Trainer(job)
    batch = trainer.random_batch()
    # The twin's launches wait as often, but briefly.
    memory = torch.ones((1 << 16) if job.tiny or job.twin else (256 << 20), dtype=torch.uint8)
    if job.twin:
        trainer.add_ballast(60.0 * trainer.tl_ms)
    stop = threading.Event()
    thread = threading.Thread(target=pin if job.cuda else lambda *_: stop.wait(),
                              args=(memory, stop, job.fix == "A"))
    meter = job.meter()
    thread.start()
    loss = None
    while True:
        loss = trainer.step(*batch)
        if not meter.go_on():
            break
    meter.stop()
    stop.set()
    thread.join()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="ALLOC")
    else:
        expect = harness.expected(
            ["ALLOC"], ["ALLOC_LOCK"], share=harness.idle_share(trainer.tc_ms, mean),
            tolerance=0.15, accept=["alloc-pinned", "alloc"],
            forbid=["num-workers", "larger-batch", "cuda-graph"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
