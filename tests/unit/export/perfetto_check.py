"""Compares perfetto_subset.proto with the protos that the `perfetto` package publishes.

Skipped (77) where the package is not installed: pip install perfetto.
"""
import re
import sys

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as published
except ImportError:
    print("skipped: the perfetto Python package is not installed")
    sys.exit(77)

TYPES = {"int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "string": 9, "uint32": 13,
         "bytes": 12}


def find_message(name):
    return getattr(published, name).DESCRIPTOR


def main(path):
    text = re.sub(r"//[^\n]*", "", open(path, encoding="utf-8").read())
    bad = 0
    compared = 0
    for name, body in re.findall(r"^message (\w+) \{(.*?)^\}", text, re.S | re.M):
        theirs = find_message(name)
        enums = dict(re.findall(r"enum (\w+) \{(.*?)\}", body, re.S))
        for enum, values in enums.items():
            published_enum = theirs.enum_types_by_name[enum]
            for value, number in re.findall(r"(\w+) = (\d+);", values):
                compared += 1
                if published_enum.values_by_name[value].number != int(number):
                    print(f"{name}.{enum}.{value}: {number}")
                    bad += 1
        fields = re.sub(r"enum \w+ \{.*?\}", "", body, flags=re.S)
        for kind, field, number in re.findall(r"(?:optional |repeated )?(\w+) (\w+) = (\d+)", fields):
            compared += 1
            other = theirs.fields_by_name.get(field)
            if other is None or other.number != int(number):
                print(f"{name}.{field}: {number}, published {other and other.number}")
                bad += 1
            elif kind in TYPES and other.type != TYPES[kind]:
                print(f"{name}.{field}: type {kind}, published {other.type}")
                bad += 1
    print(f"{compared} fields and values compared, {bad} differ")
    return 1 if bad or compared < 30 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
