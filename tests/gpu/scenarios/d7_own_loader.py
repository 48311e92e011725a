"""D7: batches come from a thread of the job's own, through queue.Queue; each waits 3 tc for a server.

No DataLoader is used. Fix A: eight such threads, whose waits overlap."""

import queue
import threading
import time

import harness


def feed(batches, batch, seconds, stop):
    while not stop.is_set():
        time.sleep(seconds)
        try:
            batches.put(batch, timeout=1.0)
        except queue.Full:
            continue


def main():
    job = harness.Job("D7", "own_loader")
    trainer = harness.Trainer(job)
    wait_ms = 3.0 * trainer.tc_ms
    if job.twin:
        trainer.add_ballast(4.0 * (wait_ms + trainer.tl_ms))
    batch = trainer.random_batch("cpu")
    batches, stop = queue.Queue(4), threading.Event()
    threads = [threading.Thread(target=feed, args=(batches, batch, wait_ms / 1e3, stop))
               for _ in range(8 if job.fix == "A" else 1)]
    meter = job.meter()
    for thread in threads:
        thread.start()
    meter, loss = harness.train(job, trainer, iter(batches.get, None), meter)
    stop.set()
    for thread in threads:
        thread.join()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="DATA")
    else:
        expect = harness.expected(
            ["DATA"], ["DATA_UNSEEN"], share=harness.idle_share(trainer.tc_ms, mean),
            accept=["own-loader"], forbid=["num-workers", "larger-batch", "pin-thread"],
            or_verdicts=["HOST"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
