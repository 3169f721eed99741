#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws what accuracy.sh measured: a bar for each bug and source, relevance and ordering, beside the published means.

usage: accuracy_plot.py OUT.svg SOURCE=FILE...   FILE has lines of: A_R A_O A cause needed nanoseconds name"""
import sys
from html import escape

PUBLISHED = {"A_R": 92, "A": 96}
ROW, LEFT, WIDTH = 15, 150, 400


def read(path):
    table = {}
    for line in open(path):
        a_r, a_o, a, cause, needed, _, name = line.split()
        table.setdefault(name, []).append((float(a_r), float(a_o), float(a), cause, int(needed)))
    return table


def bar(y, value, colour, height):
    return f'<rect x="{LEFT}" y="{y}" width="{value * WIDTH / 100:.1f}" height="{height}" fill="{colour}"/>'


def main():
    sources = [word.split("=", 1) for word in sys.argv[2:]]
    tables = {name: read(path) for name, path in sources}
    names = sorted({bug for table in tables.values() for bug in table})
    colours = {"vpt": "#1f6feb", "none": "#d29922"}
    height = 60 + len(names) * ROW * len(sources)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 190}" height="{height}" font-family="sans-serif" font-size="10">',
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="10" y="16" font-size="13">Accuracy of failure sketches (relevance and ordering, per cent)</text>']
    y = 40
    for bug in names:
        out.append(f'<text x="10" y="{y + 9}">{escape(bug)}</text>')
        for name, _ in sources:
            rows = tables[name].get(bug, [])
            if rows:
                a = sum(r[2] for r in rows) / len(rows)
                right = sum(r[3] == "yes" for r in rows)
                out.append(bar(y, a, colours.get(name, "#888"), ROW - 4))
                out.append(f'<text x="{LEFT + WIDTH + 8}" y="{y + 9}">{name} {a:.0f} %, cause right in {right} of {len(rows)}, '
                           f'{max(r[4] for r in rows)} failing</text>')
            y += ROW
    for label, value in PUBLISHED.items():
        x = LEFT + value * WIDTH / 100
        out.append(f'<line x1="{x}" y1="34" x2="{x}" y2="{y}" stroke="#c00" stroke-dasharray="4 3"/>')
        out.append(f'<text x="{x}" y="{31 if label == "A" else y + 12}" fill="#c00" text-anchor="middle">published {label} {value}</text>')
    out.append("</svg>")
    open(sys.argv[1], "w").write("\n".join(out) + "\n")


main()
