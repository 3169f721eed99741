#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_doc.py FILE.md: does what a document says, in the current folder, and compares.

  ```c queue.c          a fence with a file name: the file is written
  ```console            lines with "$ " are run by bash, the lines below are what they print. A line "..." stands for
                        any lines, "..." in a line for any text. Nothing below: the exit status must be 0
  ```console no-test    not run, and counted: what needs a machine that a test does not have
Other fences are not looked at. Ends with status 1 at the first difference, and if nothing was run."""
import re
import subprocess
import sys


def fences(text):
    """[(info, lines)]"""
    return [(info, body.split("\n")[:-1]) for info, body in re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.M | re.S)]


def commands(lines):
    """[(command, expected lines)]. A command goes on behind a backslash, and to the end of a here-document."""
    found, i = [], 0
    while i < len(lines):
        if not lines[i].startswith("$ "):
            sys.exit(f"output without a command: {lines[i]}")
        command, i = lines[i][2:], i + 1
        while command.endswith("\\"):
            command, i = command + "\n" + lines[i], i + 1
        here = re.search(r"<<'?(\w+)'?", command)
        while here and not command.endswith("\n" + here.group(1)):
            command, i = command + "\n" + lines[i], i + 1
        end = next((j for j in range(i, len(lines)) if lines[j].startswith("$ ")), len(lines))
        found.append((command, lines[i:end]))
        i = end
    return found


def pattern(expected):
    """A line "..." takes any number of lines."""
    out = ""
    for line in expected:
        line = line.rstrip()
        out += r"(?:.*\n)*?" if line == "..." else ".*?".join(map(re.escape, line.split("..."))) + r" *\n"
    return re.compile(out)


def run(command, expected):
    done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=600)
    if not expected and done.returncode != 0:
        sys.exit(f"$ {command}\n{done.stdout}exit status {done.returncode}")
    if expected and not pattern(expected).fullmatch(done.stdout if done.stdout.endswith("\n") else done.stdout + "\n"):
        sys.exit(f"$ {command}\n{done.stdout}does not fit what the document says:\n" + "\n".join(expected))


def main():
    ran = left = 0
    with open(sys.argv[1], encoding="utf-8") as f:
        text = f.read()
    for info, lines in fences(text):
        words = info.split()
        if words[:1] == ["console"]:
            if "no-test" in words:
                left += 1
                continue
            for command, expected in commands(lines):
                run(command, expected)
                ran += 1
        elif len(words) == 2:
            with open(words[1], "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
    print(f"{sys.argv[1]}: {ran} commands run, {left} fences are not for a test")
    sys.exit(ran == 0)


main()
