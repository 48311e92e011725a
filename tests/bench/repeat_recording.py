#!/usr/bin/env python3
"""Makes a long recording out of a short real one: its windows again and again, later each time.

  repeat_recording.py IN.istrace OUT.istrace RECORDS

Copies every packet of IN once, then its windows, op batches, call batches and host events,
moved by the length of the recording and with new window numbers, until OUT holds at least
RECORDS op and call records. Prints what it wrote. Compressed packets need `zstd` on the path.
"""

import struct
import subprocess
import sys



def body_numbers():
    """Packet's fields by name, read from the contract beside this file."""
    import os
    import re
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../proto/trace.proto")
    text = open(path, encoding="utf-8").read()
    packet = re.search(r"message Packet \{(.*?)\n\}", text, re.S).group(1)
    return {name: int(number) for name, number in re.findall(r"(\w+) = (\d+);", packet)}


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """(number, wire type, value) of a message; value: int or bytes."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = read_varint(data, at)
        elif kind == 2:
            length, at = read_varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            size = 8 if kind == 1 else 4
            value, at = data[at:at + size], at + size
        yield key >> 3, kind, value


def put(number, kind, value):
    head = varint(number << 3 | kind)
    if kind == 0:
        return head + varint(value)
    if kind == 2:
        return head + varint(len(value)) + value
    return head + value


def edit(data, changes):
    """The message with `changes` (field number -> function of its value) applied."""
    return b"".join(put(n, k, changes[n](v) if n in changes else v) for n, k, v in fields(data))


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def packets(data, names):
    for number, _, value in fields(data):
        if number != 1:
            continue
        for inner, _, body in fields(value):
            if inner == names["zstd_trace"]:
                plain = subprocess.run(["zstd", "-dc"], input=body, capture_output=True, check=True)
                yield from packets(plain.stdout, names)
            else:
                yield inner, body


def count_packed(data, field):
    for number, kind, value in fields(data):
        if number == field and kind == 2:
            return sum(byte < 0x80 for byte in value)
    return 0


def shift_chunk(raw, by):
    out = bytearray(raw)
    for at in range(0, len(out) - 63, 64):
        if struct.unpack_from("<I", out, at)[0] == 0:
            break
        begin, end = struct.unpack_from("<qq", out, at + 8)
        struct.pack_into("<qq", out, at + 8, begin + by, end + by)
    return bytes(out)


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    names = body_numbers()
    with open(sys.argv[1], "rb") as file:
        every = list(packets(file.read(), names))
    moves = {names[n]: n for n in ("window_begin", "window_end", "gpu_ops", "host_calls",
                                   "host_chunk", "host_events")}
    window_ids = [dict((n, v) for n, _, v in fields(b))[1] for k, b in every
                  if moves.get(k) == "window_begin"]
    times = [signed(dict((n, v) for n, _, v in fields(b)).get(2, 0)) for k, b in every
             if moves.get(k) in ("window_begin", "window_end")]
    if not window_ids:
        print("repeat_recording: no window in " + sys.argv[1], file=sys.stderr)
        return 1
    length = max(times) - min(times) + 1_000_000_000
    each = sum(count_packed(b, 3) for k, b in every if moves.get(k) in ("gpu_ops", "host_calls"))
    wanted, written, turn = int(sys.argv[3]), 0, 0
    with open(sys.argv[2], "wb") as out:
        def emit(kind, body):
            out.write(put(1, 2, put(kind, 2, body)))
        footers = [(k, b) for k, b in every if k == names["footer"]]
        for kind, body in every:
            if kind not in moves and kind != names["footer"]:
                emit(kind, body)
        while written < wanted:
            by, first = turn * length, turn * max(window_ids)
            time = lambda v: signed(v) + by  # noqa: E731
            window = lambda v: v + first  # noqa: E731
            for kind, body in every:
                name = moves.get(kind)
                if name in ("window_begin", "window_end", "gpu_ops", "host_calls"):
                    emit(kind, edit(body, {1: window, 2: time}))
                elif name == "host_chunk":
                    emit(kind, edit(body, {3: lambda raw: shift_chunk(raw, by)}))
                elif name == "host_events":
                    emit(kind, edit(body, {1: lambda e: edit(e, {3: time, 4: time})}))
            written += each
            turn += 1
        for kind, body in footers:
            emit(kind, body)
    print("%d records in %d windows" % (written, turn * len(window_ids)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
