"""Writes a PyTorch profile of about N events: a training loop of one shape, step after step.

Usage: large_profile.py FILE.json [EVENTS]     (2 000 000 without EVENTS)

The shape is that of a small multi-layer perceptron on a fast GPU: 107 kernels a step of one to
a few microseconds, a launch call and an operator for each, a loader that takes one batch in
fifty too long, one synchronisation a step. Times vary from step to step by a fixed sequence, so
two runs write the same bytes.
"""
import sys

KERNELS = ["void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)",
           "ampere_sgemm_32x32_sliced1x4_tn", "ampere_sgemm_32x32_sliced1x4_nn",
           "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float> >(at::native::ReduceOp<float>)",
           "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2> >(int)"]
OPERATORS = ["aten::fill_", "aten::addmm", "aten::mm", "aten::sum", "Optimizer.step#SGD.step"]
PER_STEP = 107


def main(path, events):
    out = open(path, "w", encoding="utf-8")
    out.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132}],\n'
              '"traceEvents": [\n')
    random = 12345
    written = correlation = step = 0
    now = device = 1000.0  # microseconds

    def event(category, name, process, thread, begin, length, args):
        nonlocal written
        written += 1
        out.write(('%s{"ph": "X", "cat": "%s", "name": "%s", "pid": %d, "tid": %d, "ts": %.3f, "dur": %.3f, "args": {%s}}')
                  % (",\n" if written > 1 else "", category, name, process, thread, begin, length, args))

    while written < events:
        begin = now
        random = (random * 1103515245 + 12345) & 0x7FFFFFFF
        wait = 40 + random % 20 + (9000 if step % 50 == 49 else 0)
        event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 1, now, wait, "")
        now += wait
        for k in range(PER_STEP):
            kind = k % len(KERNELS)
            correlation += 1
            event("cpu_op", OPERATORS[kind], 1, 1, now, 14, '"External id": %d' % correlation)
            event("cuda_runtime", "cudaLaunchKernel", 1, 1, now + 4, 5, '"correlation": %d' % correlation)
            device = max(device, now + 9.5)
            length = 1.0 + kind * 0.4 + random % 3 * 0.1
            event("kernel", KERNELS[kind], 0, 7, device, length,
                  '"correlation": %d, "device": 0, "stream": 7, "grid": [%d, 1, 1], "block": [128, 1, 1]'
                  % (correlation, 4 + 8 * kind))
            device += length
            now += 17 + random % 5 * 0.2
        correlation += 1
        length = max(2.0, device - now + 3)
        event("cuda_runtime", "cudaStreamSynchronize", 1, 1, now, length, '"correlation": %d' % correlation)
        now += length + 10
        event("user_annotation", "ProfilerStep#%d" % step, 1, 1, begin, now - begin, "")
        step += 1
    out.write("\n]}\n")
    out.close()
    print(f"{path}: {written} events, {step} steps")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2_000_000)
