#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds one sketch (JSON) against a corpus bug's ideal: relevance, ordering, accuracy, and whether the top predictor is the cause.

usage: accuracy.py IDEAL SOURCE SKETCH.json   prints one line: A_R A_O A cause runs-failing runs-passing, tab-separated.
"cause" is yes (the ideal predictor's kind and statements), part (its statements, with others or fewer), or no."""
import json
import re
import sys


def fields(path):
    """The ideal's keys; "or" has the predictors that are as right as "predictor", in a list."""
    pairs = [line.strip().split(": ", 1) for line in open(path) if ": " in line]
    return dict(pairs, **{"or": [value for key, value in pairs if key == "or"]})


def verdict(predictor, top, labels):
    """Whether the top predictor is the ideal one: yes, part or no."""
    kind, *names = predictor.split()
    if not top:
        return "no"
    lines = [s["line"] for s in top["statements"]]
    if kind in ("order", "atomicity", "lock_order", "wait", "origin"):
        expected = [labels[n] for n in names if n in labels]
        turned = [lines[i:] + lines[:i] for i in range(0, len(lines), 2)]  # a ring begins anywhere
        if top["kind"] == kind and (lines == expected or kind == "lock_order" and expected in turned):
            return "yes"
        if top["kind"] in ("order", "atomicity", "lock_order") and len(set(lines) & set(expected)) >= min(2, len(set(expected))):
            return "part"
    elif kind == "branch":
        if labels[names[0]] in lines:
            return "yes" if top["kind"] == kind else "part"
    elif kind == "value" and top["kind"] == "value":
        return "yes" if top["text"].startswith(names[0] + (" < " if names[1] == "<" else " == ")) else "part"
    return "no"


def main():
    ideal, source = fields(sys.argv[1]), open(sys.argv[2]).read().split("\n")
    labels = {m: n + 1 for n, line in enumerate(source) for m in re.findall(r"//@(\w+)", line)}
    sketch = json.load(open(sys.argv[3]))
    groups = [group.split("+") for group in ideal["sketch"].split()]  # a+b: either may come first
    want = [labels[name] for group in groups for name in group]
    free = {frozenset((labels[a], labels[b])) for group in groups for a in group for b in group if a != b}
    bug = sys.argv[2].rsplit("/", 1)[-1]

    def place(p):
        name = p["file"].rsplit("/", 1)[-1]
        return p["line"] if name == bug else f"{name}:{p['line']}"

    got = []
    for step in sketch["steps"]:
        if place(step["place"]) not in got:
            got.append(place(step["place"]))
    both = [line for line in want if line in got]
    a_r = 100 * len(both) / len(set(want) | set(got))
    ranks = {}
    for step in sketch["steps"]:
        ranks.setdefault(place(step["place"]), []).append(step["row"])
    # A pair disagrees where the sketch puts every instance of the later one strictly before every one of the earlier one.
    # Equal ranks, and what the sketch calls unordered, claim nothing.
    unknown = {frozenset(u["steps"]) for u in sketch["unordered"]}
    where = {}
    for i, step in enumerate(sketch["steps"]):
        where.setdefault(place(step["place"]), []).append(i)
    pairs = wrong = 0
    for i, first in enumerate(both):
        for second in both[i + 1:]:
            pairs += 1
            wrong += frozenset((first, second)) not in free and max(ranks[second]) < min(ranks[first]) and not all(
                frozenset((a, b)) in unknown for a in where[first] for b in where[second])
    a_o = 100 * (1 - wrong / pairs) if pairs else 100
    top = sketch["predictors"][0] if sketch["predictors"] else None
    verdicts = [verdict(p, top, labels) for p in [ideal["predictor"], *ideal["or"]]]
    cause = next(v for v in ("yes", "part", "no") if v in verdicts)
    text = top["text"] if top else "-"
    shown = {v: k for k, v in labels.items()}
    lacks = " ".join(shown[n] for n in want if n not in got) or "-"
    extra = " ".join(shown.get(n, str(n)) for n in got if n not in want) or "-"
    fields_out = [f"{a_r:.0f}", f"{a_o:.0f}", f"{(a_r + a_o) / 2:.0f}", cause, sketch["failing_runs"], sketch["passing_runs"],
                  f"{top['f'] if top else 0:.2f}", text, f"lacks {lacks}; extra {extra}"]
    print("\t".join(str(f) for f in fields_out))


main()
