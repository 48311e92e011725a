"""Traces of torch.profiler: what its own step-time breakdown says, and what our importer says.

In: a cell of mode "kineto" (kineto.pt.trace.json.gz). Out: shares of the step by the rule of
PyTorch's TensorBoard plugin (its README, "Step Time Breakdown": at each moment the first of
Kernel, Memcpy, Memset, Runtime, DataLoader, CPU Exec that is under way; Other where none is), and
the verdict of `idlescope report` on the same file."""

import gzip
import json

ORDER = ("Kernel", "Memcpy", "Memset", "Runtime", "DataLoader", "CPU Exec")
BY_CATEGORY = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset",
               "cuda_runtime": "Runtime", "cuda_driver": "Runtime", "cpu_op": "CPU Exec"}


def read_events(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", errors="replace") as file:
        return json.load(file).get("traceEvents", [])


def kind_of(event):
    name = event.get("name", "")
    if name.startswith("enumerate(DataLoader)"):
        return "DataLoader"
    return BY_CATEGORY.get(str(event.get("cat", "")).lower())


def steps_of(events):
    """[(begin, end)] of the profiler's steps on the host, in microseconds."""
    spans = [(float(e["ts"]), float(e["ts"]) + float(e["dur"])) for e in events
             if e.get("ph") == "X" and e.get("name", "").startswith("ProfilerStep#")
             and str(e.get("cat", "")).lower() in ("user_annotation", "cpu_op", "")]
    return sorted(set(spans))


def breakdown(events):
    """{kind: share of the steps}, shares add up to 1; {} without a step."""
    steps = steps_of(events)
    if not steps:
        return {}
    begin, end = steps[0][0], max(s[1] for s in steps)
    marks = []
    for event in events:
        kind = kind_of(event) if event.get("ph") == "X" else None
        if kind is None or "dur" not in event:
            continue
        first = max(begin, float(event["ts"]))
        last = min(end, float(event["ts"]) + float(event["dur"]))
        if first < last:
            index = ORDER.index(kind)
            marks.append((first, index, 1))
            marks.append((last, index, -1))
    marks.sort()
    total = dict.fromkeys(ORDER + ("Other",), 0.0)
    running = [0] * len(ORDER)
    at = begin
    for time, index, change in marks + [(end, 0, 0)]:
        if time > at:
            current = next((k for k, n in zip(ORDER, running) if n > 0), "Other")
            total[current] += time - at
            at = time
        running[index] += change
    return {kind: part / (end - begin) for kind, part in total.items()}


def text(shares):
    return ", ".join("%s %.0f %%" % (kind, 100 * share)
                     for kind, share in shares.items() if share >= 0.005)
