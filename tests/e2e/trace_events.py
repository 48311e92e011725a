"""Reads .istrace files in tests: packets, names and host events, without libprotobuf.

A second reader of the format on purpose: it shares no code with the product.
"""

import collections
import copy
import glob
import os
import struct

# HostEventKind of trace.proto.
KINDS = {
    1: "create", 2: "next", 3: "wait", 4: "end", 5: "reset", 6: "index", 7: "shutdown",
    8: "worker_started", 9: "site", 10: "unseen", 11: "pin_inline", 32: "loop",
    33: "index_wait", 34: "fetch", 35: "fetch_cpu", 36: "fetch_io", 37: "put", 38: "pickle",
    39: "exit", 40: "frame", 41: "empty", 42: "dataset", 48: "pin_wait", 49: "pin_copy",
    50: "pin_put", 64: "step", 65: "range", 66: "mark", 67: "gc", 68: "checkpoint",
    69: "other_profiler", 70: "capture", 71: "thread_cpu", 72: "notebook_cell",
}
RECORD = struct.Struct("<IIqqIIqqqq")
Event = collections.namedtuple(
    "Event", "kind thread begin end iterator epoch batch a b c")


class Damaged(Exception):
    pass


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Damaged("varint at %d" % at)
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = data[at:at + 8], at + 8
        elif tag & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            if at > len(data):
                raise Damaged("field ends at %d of %d" % (at, len(data)))
        else:
            raise Damaged("wire type %d" % (tag & 7))
        yield tag >> 3, value


def message(data):
    return dict(fields(data))


def signed(value):
    return value - (1 << 64) if value >> 63 else value


class Trace:
    """One process's file."""

    def __init__(self, path):
        self.path = path
        self.names, self.events, self.packets = {}, [], []
        self.header = {}
        with open(path, "rb") as file:
            data = file.read()
        self.size = len(data)
        for number, packet in fields(data):
            if number == 0:
                break  # room that was reserved and not used
            if number != 1:
                raise Damaged("field %d is no packet" % number)
            for kind, body in fields(packet):
                self.packets.append((kind, body))
                if kind == 1:
                    self.header = message(body)
                elif kind == 7:
                    for _, entry in fields(body):
                        entry = message(entry)
                        self.names[entry[1]] = entry[2].decode()
                elif kind == 11:
                    self._chunk(message(body).get(3, b""))
        self.process = message(self.header.get(4, b""))

    def _chunk(self, raw):
        for record in RECORD.iter_unpack(raw):
            if record[0]:
                self.events.append(Event(KINDS.get(record[0], record[0]), *record[1:]))

    def between(self, begin, end):
        """The same file with the events that begin in [begin, end)."""
        part = copy.copy(self)
        part.events = [e for e in self.events if begin <= e.begin < end]
        return part

    @property
    def pid(self):
        return self.process.get(2, 0)

    @property
    def role(self):
        return {1: "main", 2: "worker", 3: "helper"}.get(self.process.get(8, 0), "unknown")

    @property
    def complete(self):
        """It has a footer: the process ended in order."""
        return any(kind == 19 for kind, _ in self.packets)

    def of(self, *kinds):
        return [e for e in self.events if e.kind in kinds]

    def count(self, kind):
        return len(self.of(kind))


def read_directory(path):
    return [Trace(p) for p in sorted(glob.glob(os.path.join(path, "*.istrace")))]


def main_of(traces):
    """The process that iterated."""
    found = [t for t in traces if t.count("create")]
    return found[0] if found else None
