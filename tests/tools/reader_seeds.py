# SPDX-License-Identifier: MIT
"""reader_seeds.py KIND [ELF] CORPUS: inputs to begin with, for the fuzz targets of the same name."""
import os
import struct
import sys

kind, corpus = sys.argv[1], sys.argv[-1]


def seed(name, data):
    with open(os.path.join(corpus, name), "wb") as out:
        out.write(data)


def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def pools():
    text = lambda data: struct.pack("<H", len(data)) + data
    maps = open("/proc/self/maps", "rb").read()[:2000]
    words = b"/bin/true\0/tmp\0true\0-x\0"
    start = int(maps.split(b"-")[0], 16)
    head = struct.pack("<QIIIIIIQII", 0, 0, 7, 2, 2, 2, 1, 99, len(maps), 0)
    head += struct.pack("<10IQ", 0, 0, 1, 0, 2, 0, 1, 0, 0, 0, 0)[:40]
    head += struct.pack("<QQIIIIIIII", 5, 6, 0, 4026531836, len(words), 0, 1, 0, 1, 0) + b"true".ljust(16, b"\0")
    module = struct.pack("<QI36s", start, 20, b"\1" * 20)
    registers = [0] * 24
    registers[6], registers[7], registers[8] = 0x7FFC00000010, 0x7FFC00000000, start + 0x100
    death = struct.pack("<IIIiiIQQ24QQQI3I", 3, 7, 8, 11, 1, 0, 0, 9, *registers, 0x7FFC00000000, 0x7FFC00001000, 512, 0, 0, 0)
    death += struct.pack("<QQ", 0x7FFC00000020, start + 0x200) * 32
    ring = b""
    for number in range(2):
        state = struct.pack("<IIQQQII", 1, 8 + number, 2, 5, 0, 0, 7 + number).ljust(512, b"\0")
        chunks = b"".join(struct.pack("<IIQQ", 0x6B6E6863, 1, s, 0).ljust(4096, b"\x55") for s in range(2))
        ring += (state + chunks).ljust(3 * 4096, b"\0")
    seed("two", head + text(maps) + text(words) + module + death + ring)


def maps():
    seed("self", open("/proc/self/maps", "rb").read())
    seed("places", b"counter:8:rw\n*p[3]:4:r\n@0x401000:4:here\n0x1000:8\nrax,rbx,8,-16\nrip,,,0x20\n")


def sync():
    where = lambda part, ring, at: part << 30 | ring << 28 | at
    event = [(where(1, 0, 16), 3)] + [(where(2, 0, 64 * i), i + 1) for i in range(3)]
    throw = [(where(3, 0, 0), 1), (where(3, 0, 8), 2 | 1 << 32), (where(3, 0, 32), 3)]
    seed("events", b"".join(struct.pack("<IQ", w, v) for w, v in event))
    seed("throws", b"".join(struct.pack("<IQ", w, v) for w, v in event + throw))


def vpt():
    event = lambda kind, body: struct.pack("<IIQ", 16 + len(body), kind, 5) + body
    image = struct.pack("<QQQQQII", 0x1000, 0x1000, 0, 1, 0, 8, 8) + b"/bin/abc" + b"\x90" * 8
    access = struct.pack("<QQQQQIIII", 0x1000, 0x2000, 7, 1, 0, 8, 6, 0, 1)
    note = lambda kind: event(kind, struct.pack("<QQQII", 1, 0x3000, 11, 1, 4) + b"name\0\0\0\0")
    seed("all", b"\x01" + event(1, image) + event(2, access) + b"".join(note(k) for k in range(3, 9)))


def plan():
    watch = field(1, b"counter") + field(5, b"rax,rbx,8,16") + b"\x30\x08"
    seed("one", field(1, b"prog") + field(5, field(1, watch)) + field(6, b"\x09" + b"\1" * 8))


def unwind():
    elf = open(sys.argv[2], "rb").read()[:60000]
    registers = [0] * 24
    registers[7], registers[8] = 0x7FFC00000000, 0x400000 + struct.unpack_from("<Q", elf, 24)[0]
    seed("one", struct.pack("<H", len(elf)) + elf + struct.pack("<24Q", *registers) + struct.pack("<Q", 0x400200) * 64)


globals()[kind]()
