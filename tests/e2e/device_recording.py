"""A trace file with device records as Python values, by `idlescope dump`."""

import json
import os
import subprocess

import harness


def dump(path):
    out = subprocess.run([harness.BIN, "dump", path], capture_output=True, check=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


class Recording:
    def __init__(self, folder):
        paths = [os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(".istrace")]
        assert len(paths) == 1, paths
        self.path = paths[0]
        self.lines = dump(self.path)
        self.names = {e["id"]: e["text"] for l in self.lines if "names" in l
                      for e in l["names"]["entry"]}
        self.what = {"gpu_op": {}, "host_call": {}}
        for line in self.lines:
            for table, entries in line.get("descriptors", {}).items():
                self.what[table].update({e["id"]: e for e in entries})
        self.ops = [dict(r, window=l["gpu_ops"]["window_id"]) for l in self.lines
                    if "gpu_ops" in l for r in l["gpu_ops"]["records"]]
        self.calls = [dict(r, window=l["host_calls"]["window_id"]) for l in self.lines
                      if "host_calls" in l for r in l["host_calls"]["records"]]

    def all(self, kind):
        return [l[kind] for l in self.lines if kind in l]

    def kernels(self):
        return [o for o in self.ops
                if self.what["gpu_op"][o["descriptor_id"]]["kind"] == "OP_KERNEL"]

    def unjoined(self):
        calls = {(c["window"], c["correlation_id"]) for c in self.calls}
        return [o for o in self.ops if (o["window"], o["correlation_id"]) not in calls]
