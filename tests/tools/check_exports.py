# SPDX-License-Identifier: MIT
# check_exports.py TABLE FOLDED SPEEDSCOPE: the rules of both formats, and the same sums in both.
import json
import re
import sys

table = json.load(open(sys.argv[1]))
names = {f["name"] for f in table["functions"]}
folded = {}
for line in open(sys.argv[2]):
    stack, weight = re.fullmatch(r"(.+) (\d+)\n", line).groups()
    assert stack not in folded, "a stack twice"
    folded[stack] = int(weight)
    for frame in stack.split(";"):
        assert frame in names or ":" in frame, frame

scope = json.load(open(sys.argv[3]))
assert scope["$schema"] == "https://www.speedscope.app/file-format-schema.json"
frames = scope["shared"]["frames"]
assert all(isinstance(f["name"], str) for f in frames)
for profile in scope["profiles"]:
    assert profile["type"] == "sampled" and isinstance(profile["name"], str)
    assert profile["unit"] in ("none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes")
    assert len(profile["samples"]) == len(profile["weights"])
    assert all(w >= 0 for w in profile["weights"])
    assert all(0 <= i < len(frames) for s in profile["samples"] for i in s)
    assert abs(profile["endValue"] - profile["startValue"] - sum(profile["weights"])) <= 1 + 1e-6 * profile["endValue"]
    assert abs(sum(profile["weights"]) - sum(folded.values())) <= len(profile["samples"]) + 1
    for sample, weight in zip(profile["samples"], profile["weights"]):
        stack = ";".join(frames[i]["name"].replace(";", ":") for i in sample)
        assert weight < 1.5 or abs(folded[stack] - weight) <= 1, stack
backoff = sum(w for s, w in folded.items() if s.split(";")[-1].startswith("backoff"))
assert backoff >= 3e6, backoff
