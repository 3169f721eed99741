# SPDX-License-Identifier: MIT
"""What etch decoded of a case against what the module saw run. Imported by pt.sh's check."""
import os
import struct
import subprocess

RAN, FAULTED = 0, 1


def truth(folder):
    """By thread: the addresses that ran, and where a fault was."""
    ran, faults = {}, {}
    with open(os.path.join(folder, "truth"), "rb") as file:
        for ip, tid, kind in struct.iter_unpack("<QII", file.read()):
            (ran if kind == RAN else faults).setdefault(tid, []).append(ip)
    return ran, faults


def decode(etch, bundle, *options):
    out = subprocess.run([etch, "decode", bundle, *options], check=True, capture_output=True, text=True)
    return out.stdout.splitlines()


def executed(etch, bundle):
    """By thread: the addresses that etch says ran."""
    ran = {}
    for line in decode(etch, bundle, "--fields", "tid,ip"):
        tid, ip = line.split()
        ran.setdefault(int(tid), []).append(int(ip, 16))
    return ran


def losses(etch, bundle):
    """What the decoder says is missing."""
    return [line for line in decode(etch, bundle) if " -- " in line]


def first_difference(a, b):
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return i
    return min(len(a), len(b))


def same(got, want, what):
    if got == want:
        return
    i = first_difference(got, want)
    near = [f"{x:x}" for x in got[max(0, i - 2):i + 3]], [f"{x:x}" for x in want[max(0, i - 2):i + 3]]
    raise AssertionError(f"{what}: {len(got)} decoded, {len(want)} ran; differ at {i}: {near[0]} not {near[1]}")
