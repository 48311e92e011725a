#!/usr/bin/env python3
"""Runs `idlescope report` over one job in many spellings and over files that are something else.

Usage: import_dialects.py IDLESCOPE [WORD]   (only the cases with WORD in their name)

The job waits 8 ms of a 10.6 ms step for data, the GPU computes 2.5 ms: DATA. Every spelling of
it that says so must give DATA; where the evidence is gone the answer is "cannot tell", and what
is no profile is refused by name. A false verdict is what this looks for. The inputs are made
here: they are what nobody has published, beside the recordings of tools/import_cases.py.
"""
import copy
import gzip
import io
import json
import os
import pickle
import subprocess
import sys
import tarfile
import tempfile
import zipfile

GPU = ("kernel", "gpu_memcpy", "gpu_memset")
CASES = {}


def profile(wait=8000.0, kernel=500.0, begin=1712195495505543.0, hip=False, steps=30):
    """What torch.profiler writes: `wait` us in next(), a copy, five kernels, loss.item()."""
    events = []
    pid = 4242

    def call_name(name):
        return name.replace("cuda", "hip") if hip else name

    def host(category, name, ts, dur, **args):
        events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": pid,
                       "ts": round(ts, 3), "dur": round(dur, 3), "args": args})

    def device(category, name, ts, dur, correlation, **args):
        events.append({"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7,
                       "ts": round(ts, 3), "dur": round(dur, 3),
                       "args": {"device": 0, "context": 1, "stream": 7,
                                "correlation": correlation, **args}})

    now = gpu = begin
    correlation = 0
    for step in range(steps):
        step_begin = now
        host("user_annotation",
             "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", now, wait)
        host("cpu_op", "aten::stack", now + 1, wait / 2)
        now += wait + 10
        correlation += 1
        host("cuda_runtime", call_name("cudaMemcpyAsync"), now, 20, correlation=correlation)
        gpu = max(gpu, now + 8)
        device("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", gpu, 30, correlation, bytes=1 << 18)
        gpu += 30
        now += 30
        for index in range(5):
            correlation += 1
            host("cpu_op", "aten::addmm", now, 22)
            host("cuda_runtime", call_name("cudaLaunchKernel"), now + 10, 8,
                 correlation=correlation)
            gpu = max(gpu, now + 14)
            device("kernel", "sgemm" if index % 2 else "void at::native::vec<float>(int)", gpu,
                   kernel, correlation, grid=[160, 1, 1], block=[256, 1, 1])
            gpu += kernel
            now += 25
        host("user_annotation", "Optimizer.step#SGD.step", now, 15)
        now += 16
        correlation += 1
        host("cuda_runtime", call_name("cudaMemcpyAsync"), now, 10, correlation=correlation)
        gpu = max(gpu, now + 5)
        device("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", gpu, 2, correlation, bytes=4)
        gpu += 2
        now += 10
        correlation += 1
        host("cuda_runtime", call_name("cudaStreamSynchronize"), now, gpu + 6 - now,
             correlation=correlation)
        now = gpu + 8
        host("user_annotation", f"ProfilerStep#{step}", step_begin, now - step_begin)
    events.append({"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans",
                   "tid": "PyTorch Profiler", "ts": begin, "dur": now - begin, "args": {}})
    events.append({"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "",
                   "ts": now})
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU", "numSms": 108}],
            "traceEvents": events}


def text(root, **how):
    return json.dumps(root, **how).encode()


def mapped(root, change):
    """`root` with change(event): an event, several, or None for none."""
    out = dict(root)
    out["traceEvents"] = []
    for event in root["traceEvents"]:
        got = change(copy.deepcopy(event))
        if got is not None:
            out["traceEvents"] += got if isinstance(got, list) else [got]
    return out


def without(root, *categories):
    return mapped(root, lambda e: None if e.get("cat") in categories else e)


def unnamed(root, *prefixes):
    return mapped(root, lambda e: None if e["name"].startswith(prefixes) else e)


def on_gpu(change):
    def only(event):
        if event.get("cat") in GPU:
            change(event)
        return event
    return only


def scaled(root, factor, kind=float):
    def change(event):
        event["ts"] = kind(event["ts"] * factor)
        if "dur" in event:
            event["dur"] = kind(event["dur"] * factor)
        return event
    return mapped(root, change)


def pairs(event):
    if event["ph"] != "X" or event["cat"] == "Trace":
        return event
    end = {"ph": "E", "pid": event["pid"], "tid": event["tid"],
           "ts": round(event["ts"] + event.pop("dur"), 3)}
    event["ph"] = "B"
    return [event, end]


def renamed(names):
    def change(event):
        event["cat"] = names.get(event.get("cat"), event.get("cat"))
        return event
    return change


def add(name, wanted, content):
    """`wanted`: a verdict, the id of a refusal, or a set of either."""
    CASES[name] = ({wanted} if isinstance(wanted, str) else set(wanted), content)


def same_job():
    job = profile()
    early = profile(begin=1000.0)
    add("plain", "DATA", text(job))
    add("indented", "DATA", text(job, indent=1))
    add("crlf", "DATA", text(job, indent=1).replace(b"\n", b"\r\n"))
    add("array", "DATA", text(job["traceEvents"]))
    add("byte-order-mark", "DATA", b"\xef\xbb\xbf" + text(job))
    add("gzip", "DATA", gzip.compress(text(job)))
    add("gzip-members", "DATA",
        gzip.compress(text(job)[:5000]) + gzip.compress(text(job)[5000:]))
    add("no-properties", "DATA", text({"traceEvents": job["traceEvents"]}))
    add("no-span-row", "DATA", text(without(job, "Trace")))
    add("no-operators", "DATA", text(without(job, "cpu_op")))
    add("no-profiler-steps", "DATA", text(unnamed(job, "ProfilerStep")))
    add("categories-of-2020", "DATA", text(mapped(job, renamed(
        {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "cuda_runtime": "Runtime",
         "cpu_op": "Operator"}))))
    add("category-list", "DATA", text(mapped(job, renamed(
        {"cuda_runtime": "cuda_runtime,gpu"}))))
    ordered = mapped(job, pairs)
    ordered["traceEvents"].sort(key=lambda e: (e["ts"], e["ph"] != "E"))
    add("begin-end-pairs", "DATA", text(ordered))
    add("begin-end-in-turn", "DATA", text(mapped(job, pairs)))
    add("times-in-strings", "DATA", text(scaled(job, 1, str)))
    add("times-whole", "DATA", text(scaled(job, 1, int)))
    add("times-near-zero", "DATA", text(early))
    add("times-negative", "DATA", text(profile(begin=-5e6)))
    add("base-time", "DATA", text({**early, "baseTimeNanoseconds": 1735632360000000000}))
    add("base-time-in-string", "DATA", text({**early, "baseTimeNanoseconds": "17356323600000"}))
    add("base-time-absurd", "DATA", text({**early, "baseTimeNanoseconds": 2**63 - 1}))
    add("base-time-negative", "DATA", text({**early, "baseTimeNanoseconds": -2**63}))
    add("display-unit", "DATA", text({**job, "displayTimeUnit": "ns"}))
    add("ids-in-strings", "DATA", text(mapped(
        job, lambda e: {**e, "pid": str(e["pid"]), "tid": str(e["tid"])})))
    add("stream-in-words", "DATA", text(mapped(
        job, on_gpu(lambda e: e.update(tid="stream 7")))))
    add("hip-names", "DATA", text(profile(hip=True)))
    add("no-phase", "DATA", text(mapped(
        job, lambda e: {k: v for k, v in e.items() if k != "ph"})))
    add("records-twice", "DATA", text({**job, "traceEvents": job["traceEvents"] * 2}))
    add("deep-value", "DATA", text({**job, "x": json.loads("[" * 900 + "]" * 900)}))
    add("busy", "COMPUTE", text(profile(wait=20.0, kernel=4000.0)))


def less_evidence():
    job = profile()
    add("no-arguments", "CANNOT_TELL", text(mapped(
        job, lambda e: {k: v for k, v in e.items() if k != "args"})))
    add("no-correlation", "CANNOT_TELL", text(mapped(
        job, lambda e: e.get("args", {}).pop("correlation", 0) and e or e)))
    add("no-calls", "CANNOT_TELL", text(without(job, "cuda_runtime")))
    add("cpu-only", "CANNOT_TELL", text(without(job, "cuda_runtime", *GPU)))
    add("calls-only", "CANNOT_TELL", text(without(job, *GPU)))
    add("gpu-only", "CANNOT_TELL", text(mapped(
        job, lambda e: e if e.get("cat") in GPU else None)))
    add("copies-only", "CANNOT_TELL", text(without(job, "kernel")))
    add("categories-unknown", "CANNOT_TELL", text(mapped(job, renamed(
        {"kernel": "KERNEL", "gpu_memcpy": "GPU_MEMCPY"}))))
    for name, value in {"nan": float("nan"), "infinite": float("inf"), "negative": -1.0,
                        "zero": 0}.items():
        add("kernels-" + name, "CANNOT_TELL", text(mapped(
            without(job), lambda e, v=value: {**e, "dur": v} if e.get("cat") == "kernel" else e)))
    add("names-missing", "CANNOT_TELL", text(mapped(
        job, lambda e: {k: v for k, v in e.items() if k != "name"})))
    add("gpu-clock-behind", "CANNOT_TELL", text(mapped(
        job, on_gpu(lambda e: e.update(ts=e["ts"] - 3e6)))))
    add("ids-beyond-32-bits", "CANNOT_TELL", text(mapped(
        job, lambda e: {**e, "args": {**e["args"], "correlation":
                                      e["args"]["correlation"] + 2**40}}
        if "correlation" in e.get("args", {}) else e)))
    # Without the loader's rows it is host code, which is true.
    add("no-loader", {"HOST", "CANNOT_TELL"}, text(unnamed(job, "enumerate")))


def misleading():
    job = profile()
    other = profile(wait=10.0, kernel=4000.0)

    def second(event):
        for key in ("pid", "tid"):
            if isinstance(event.get(key), int) and event[key] > 100:
                event[key] += 1
        return event
    merged = job["traceEvents"] + mapped(other, second)["traceEvents"]
    add("two-ranks-merged", "import-merged", text({**job, "traceEvents": merged}))
    add("seconds", "import-time-unit", text(scaled(job, 1e-6)))
    add("milliseconds", "import-time-unit", text(scaled(profile(begin=0.0), 1e-3)))
    add("nanoseconds", "import-no-times", text(scaled(job, 1000, int)))
    add("half-a-file", "DATA", text(job)[:len(text(job)) // 2])
    add("two-files-in-one", "DATA", text(job) * 2)


def something_else():
    job = text(profile(steps=2))
    kinds = {"tar": "w", "tar-gzip": "w:gz", "tar-xz": "w:xz"}
    for name, mode in kinds.items():
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode=mode) as archive:
            member = tarfile.TarInfo("rank0.json")
            member.size = len(job)
            archive.addfile(member, io.BytesIO(job))
        add(name, "foreign-file", packed.getvalue())
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("rank0.json", job)
    add("zip", "foreign-file", packed.getvalue())
    add("gzip-twice", "foreign-file", gzip.compress(gzip.compress(job)))
    add("utf-16", "foreign-file", job.decode().encode("utf-16"))
    add("json-lines", "foreign-file",
        "\n".join(json.dumps(e) for e in profile()["traceEvents"]).encode())
    add("html", "foreign-file", b"\n <html lang=en><body>x</body></html>")
    add("csv", "foreign-file", b"Time (%),Total Time (ns),Instances\n1.0,2,3\n")
    add("note", "foreign-file", b"hello\n")
    add("script", "foreign-file", b"#!/usr/bin/env python3\nimport torch\n")
    add("zero-bytes", "foreign-file", bytes(4096))
    add("noise", "not-a-trace", b"\xff" * 4096)
    add("pickle", "not-a-trace", pickle.dumps({"a": 1}))
    add("memory-timeline", "not-a-trace", b"[[1715, 1716], [[1, 2, 3], [4, 5, 6]]]")
    add("no-events-key", "not-a-trace", b'{"a": 1}')
    add("events-null", "not-a-trace", b'{"traceEvents": null}')
    add("no-events", "import-empty", b'{"schemaVersion": 1, "traceEvents": []}')
    rows = [{"ph": "X", "cat": "toplevel", "name": "f", "pid": 1, "tid": 1, "ts": i, "dur": 1}
            for i in range(50)]
    add("other-chrome-trace", "foreign-file", text({"traceEvents": rows}))
    add("viztracer", "foreign-file", text({"traceEvents": rows, "viztracer_metadata": {}}))
    device = {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}}
    add("jax", "foreign-file", text({"traceEvents": [device] + [
        {"ph": "X", "pid": 1, "tid": 1, "ts": i, "dur": 1, "name": "fusion"} for i in range(30)]}))


def said(tool, path):
    done = subprocess.run([tool, "report", "--json", path], capture_output=True, text=True,
                          errors="replace", timeout=120, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)["verdict"], ""
    if done.returncode == 2 and done.stderr.startswith("idlescope: ["):
        return done.stderr.split("[", 1)[1].split("]", 1)[0], done.stderr
    return f"exit code {done.returncode}", done.stderr


def main():
    for fill in (same_job, less_evidence, misleading, something_else):
        fill()
    wrong = ran = 0
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "file.json")
        for name, (wanted, content) in CASES.items():
            if not any(word in name for word in sys.argv[2:] or [""]):
                continue
            with open(path, "wb") as file:
                file.write(content)
            got, words = said(sys.argv[1], path)
            ran += 1
            if got not in wanted:
                wrong += 1
                print(f"{name}: {got}, expected {' or '.join(sorted(wanted))} {words[:300]}")
    print(f"{ran - wrong} of {ran} as expected")
    return 1 if wrong or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
