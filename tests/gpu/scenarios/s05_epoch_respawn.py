"""S05: worker processes are started afresh (spawn) at every epoch, with a large dataset.

Each start imports the framework and unpickles 50 MB; between the starts the device is the
limit. Fix A: persistent_workers=True. The twin forks its workers, has a small dataset and long
steps."""

import time

import harness


class HeavySet(harness.ImageSet):
    def __init__(self, length, side, megabytes):
        super().__init__(length, side)
        self.payload = bytes(megabytes << 20)


def main():
    job = harness.Job("S05", "epoch_respawn", steps=60)
    trainer = harness.Trainer(job)
    if job.twin:
        trainer.add_ballast(10.0 * trainer.tc_ms)
    epochs = 2 if job.tiny else 3
    per_epoch = max(2, job.args.steps // (epochs - 1))
    data = HeavySet(trainer.batch * per_epoch, trainer.side, 1 if job.tiny or job.twin else 50)
    batches = harness.loader(job, data, trainer.batch, num_workers=2,
                             multiprocessing_context="fork" if job.twin else "spawn",
                             persistent_workers=job.fix == "A")
    meter = job.meter(warm_up=0, steps=epochs * per_epoch - 1)
    waits, loss = [], None
    begin = time.perf_counter()
    for _ in range(epochs):
        asked = time.perf_counter()
        first = True
        for images, labels in batches:
            if first:
                waits.append(time.perf_counter() - asked)
                first = False
            images = images.to(job.device, non_blocking=True)
            labels = labels.to(job.device, non_blocking=True)
            loss = trainer.step(images, labels)
            meter.go_on()
    meter.stop()
    wall = time.perf_counter() - begin
    job.measured.update(epoch_waits_s=waits, loop_s=wall, epochs=epochs)
    if job.twin:
        expect = harness.device_bound(gone="STARTUP", forbid=["num-workers"])
    elif job.fix == "A":
        # The first start remains; whether it or the device is named is a matter of length.
        expect = harness.expected(["COMPUTE", "STARTUP"], forbid=["persistent-workers", "num-workers"])
    else:
        expect = harness.expected(["STARTUP"], [], ["LIMITER_STARTUP"],
                                  share_of_run=sum(waits) / wall,
                                  accept=["persistent-workers", "start-method"],
                                  forbid=["num-workers", "cheaper-prepare"])
    harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)


if __name__ == "__main__":
    main()
