"""S12: two ranks in data parallel; rank 1 waits for its input 2.5 tc a step.

Rank 0 then waits inside the collective: that is no network problem. Start it with
torch.distributed.run; nccl where each rank has its own device, else gloo on one.
Fix A: no delay. Fix B is another fault: rank 1 is late because of extra work in backward."""

import os
import sys

import torch
import torch.distributed as distributed

import harness
import slow_store


class Delay(torch.autograd.Function):
    """Burns CPU time in the backward pass."""

    @staticmethod
    def forward(context, x, milliseconds):
        context.milliseconds = milliseconds
        return x

    @staticmethod
    def backward(context, gradient):
        harness.burn(context.milliseconds)
        return gradient, None


def main():
    if "RANK" not in os.environ:
        sys.exit("start with: python3 -m torch.distributed.run --standalone --nproc-per-node 2 ...")
    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    job = harness.Job("S12", "rank_straggler", fixes=("none", "A", "B"), steps=60)
    devices = torch.cuda.device_count() if job.cuda else 0
    nccl = devices >= 2
    if job.cuda:
        job.device = torch.device("cuda", local % devices)
        torch.cuda.set_device(job.device)
    distributed.init_process_group("nccl" if nccl else "gloo")
    trainer = harness.Trainer(job, batch=4 if job.tiny else 256)
    tc = torch.tensor([trainer.tc_ms], device=job.device)
    distributed.all_reduce(tc, distributed.ReduceOp.MAX)
    delay = 0.0 if job.fix == "A" or rank == 0 else 2.5 * float(tc)
    if job.twin:
        trainer.add_ballast(5.0 * float(tc))
    trainer.model = torch.nn.parallel.DistributedDataParallel(
        trainer.model, device_ids=[job.device.index] if job.cuda else None)
    if job.fix == "B":
        inner, milliseconds = trainer.model, delay
        trainer.model = lambda x: Delay.apply(inner(x), milliseconds)
    store = slow_store.SlowStore()
    cost = None
    if delay and job.fix == "none":
        cost = slow_store.SlowRead(store, delay / trainer.batch)
    data = harness.ImageSet(trainer.batch * (job.total_steps() + 2), trainer.side, cost)
    # Both ranks must make the same number of steps: no limit on the time.
    job.args.max_seconds = 1e9
    meter, loss = harness.train(job, trainer, harness.loader(job, data, trainer.batch))
    job.measured.update(rank=rank, backend="nccl" if nccl else "gloo", delay_ms=delay)
    mean = sum(meter.step_ms) / len(meter.step_ms)
    if job.fix == "A" or job.twin:
        expect = harness.expected(["COMPUTE", "COMM"])
    else:
        own = "DATA" if job.fix == "none" else "HOST"
        expect = harness.expected(
            ["COMM", own], share=None, accept=["straggler", "num-workers"],
            forbid=[],
            ranks={"0": ["COMM"], "1": [own]}, guilty_rank=1,
            idle=harness.idle_share(trainer.tc_ms, mean))
    if rank == 0:
        harness.finish(job, meter, trainer.tc_ms, trainer.tl_ms, expect, trainer.batch, loss)
    distributed.barrier()
    distributed.destroy_process_group()
    store.close()


if __name__ == "__main__":
    main()
