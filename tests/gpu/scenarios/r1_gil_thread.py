"""R1: a Python thread of the same process holds the interpreter 70 % of the time.

The main thread is not running and is in no call while the device idles. Fix A: the work
in a process of its own."""

import multiprocessing
import threading
import time

import harness


def work(stop):
    while not stop.is_set():
        harness.burn(7.0)
        time.sleep(0.003)


def main():
    job = harness.Job("R1", "gil_thread", steps=60)
    job.args.max_seconds = min(job.args.max_seconds, 12.0)
    trainer = harness.Trainer(job)
    if job.twin:
        # Every release of the interpreter can cost a switch interval (5 ms).
        trainer.add_ballast(60.0 * trainer.tl_ms)
    batch = trainer.random_batch()
    if job.fix == "A":
        context = multiprocessing.get_context("spawn")
        stop = context.Event()
        worker = context.Process(target=work, args=(stop,), daemon=True)
    else:
        stop = threading.Event()
        worker = threading.Thread(target=work, args=(stop,), daemon=True)
    worker.start()
    meter = job.meter(warm_up=5)
    loss = None
    while True:
        loss = trainer.step(*batch)
        if not meter.go_on():
            break
    meter.stop()
    stop.set()
    worker.join()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="HOST")
    else:
        expect = harness.expected(
            ["HOST"], ["HOST_BLOCKED"], share=harness.idle_share(trainer.tc_ms, mean),
            accept=["blocked-thread", "host-code"],
            forbid=["num-workers", "larger-batch"], or_verdicts=["LAUNCH"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
