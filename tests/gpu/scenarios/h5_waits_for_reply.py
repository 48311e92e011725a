"""H5: after each step the loop asks another process and waits 1.5 tc for the answer.

Nothing is sent to the device with it. Fix A: the answer is read one step later."""

import multiprocessing
import time

import harness


def answer(pipe, seconds):
    while pipe.recv():
        time.sleep(seconds)
        pipe.send("go on")


def main():
    job = harness.Job("H5", "waits_for_reply")
    trainer = harness.Trainer(job)
    batch = trainer.random_batch()
    wait_ms = 1.5 * trainer.tc_ms
    if job.fix == "A":
        wait_ms = 0.5 * trainer.tc_ms  # it overlaps a step and is hidden
    if job.twin:
        trainer.add_ballast(4.0 * (wait_ms + trainer.tl_ms))
    context = multiprocessing.get_context("spawn")
    mine, other = context.Pipe()
    server = context.Process(target=answer, args=(other, wait_ms / 1e3), daemon=True)
    meter = job.meter()
    server.start()
    loss, asked = None, False
    while True:
        if job.fix == "A":
            if asked:
                mine.recv()
            mine.send(True)
            asked = True
        loss = trainer.step(*batch)
        if job.fix == "none":
            mine.send(True)
            mine.recv()
        if not meter.go_on():
            break
    meter.stop()
    if asked:
        mine.recv()
    mine.send(False)
    server.join()
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.twin or job.fix == "A":
        expect = harness.device_bound(gone="HOST")
    else:
        # The main thread sleeps behind its launches: the device goes on for most of a tc.
        expect = harness.expected(
            ["HOST"], ["HOST_BLOCKED"], share=harness.idle_share(trainer.tc_ms, mean),
            accept=["blocked-call"], forbid=["num-workers", "larger-batch", "cuda-graph"],
            or_verdicts=["DATA"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
