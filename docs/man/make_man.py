#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_man.py ETCH VERSION FOLDER: a man page for etch, and one for each command, in FOLDER. They say what --help says. The pages that
are written by hand lie beside this file."""
import os
import re
import sys

import help_text


def roff(text):
    """Text as mdoc has it: no line begins with a request, and a hyphen of an option can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti").replace("`", "\\(ga")
    return re.sub(r"^(['.])", r"\\&\1", text)


def sentences(lines):
    """One sentence a line, as man pages are kept: the formatter puts the space between them."""
    return [roff(s) for s in re.split(r"(?<=[.?!:]) (?=[A-Z])", " ".join(line.strip() for line in lines))]


def word(text):
    """An argument of a macro, in quotes."""
    return '"' + roff(text).replace('"', "\\(dq") + '"'


def verbatim(lines):
    return [".Bd -literal -offset indent", *[roff(line) for line in lines], ".Ed"]


def option(o):
    out = []
    for name, value in o.spelled:
        flag = name[1:] if name.startswith("-") else name
        part = f"Fl {word(flag)}"
        if value and o.may_lack_value:
            part += f" Ns Op = Ns Ar {word(value)}"
        elif value and o.joined:
            part += f" Ns = Ns Ar {word(value)}"
        elif value:
            part += f" Ar {word(value)}"
        out.append(part)
    return [".It " + " , ".join(out), *sentences(o.text)]


def block(kind, content):
    if kind == "options":
        return [".Bl -tag -width indent", *[line for o in content for line in option(o)], ".El"]
    if kind == "verbatim":
        return verbatim(content)
    return sentences(content)


def sections(found):
    out = []
    for s in found:
        title = {"": "DESCRIPTION", "examples": "EXAMPLES"}.get(s.title, s.title.upper())
        out.append(f".Sh {title}")
        for i, (kind, content) in enumerate(s.blocks):
            if i and kind == "text":
                out.append(".Pp")
            out += block(kind, content)
    return out


def head(name, summary):
    return [
        '.\\" SPDX-License-Identifier: MIT',
        '.\\" Made from the output of --help by docs/man/make_man.py.',
        f".Dd {DATE}",
        f".Dt {name.upper()} 1",
        ".Os",
        ".Sh NAME",
        f".Nm {name}",
        f".Nd {roff(summary)}",
    ]


def usage(lines):
    """The usage as it is printed. The forms of etch are no plain lists of options."""
    return [".Sh SYNOPSIS", *sum(([".Bd -literal", roff(line), ".Ed"] for line in lines), [])]


def command_page(etch, name, summary):
    lines, found = help_text.parse(help_text.run(etch, "help", name))
    out = head(f"etch-{name}", summary) + usage(lines) + sections(found)
    return out + [".Sh SEE ALSO", ".Xr etch 1 ,", ".Xr etch 7"]


def main_page(etch, version):
    lines, found = help_text.parse(re.sub(r"\A.*\n\n", "", help_text.run(etch, "--help")))
    out = head("etch", "flight recorder and failure sketches for native programs") + usage(lines)
    out += [".Sh DESCRIPTION", ".Nm", "records how a program ran, and shows how its failure happened.", "This is version " + roff(version) + ".",
            "The commands are:", ".Bl -tag -width indent"]
    for name, summary in help_text.commands(etch):
        out += [f".It Xr etch\\-{name} 1", roff(summary[0].upper() + summary[1:] + ".")]
    out += [".El", ".Pp", ".Nm etch Fl \\-version", "prints the version and the commit that it was built from.", ".Sh ENVIRONMENT"]
    with open(os.path.join(HERE, "environment.mdoc"), encoding="utf-8") as f:
        out += [line for line in f.read().rstrip("\n").split("\n") if not line.startswith('.\\"')]
    return out + [".Sh SEE ALSO", *[f".Xr etch\\-{n} 1 ," for n, _ in sorted(help_text.commands(etch))], ".Xr etch\\-policy 5 ,", ".Xr etch 7"]


def write(folder, name, lines):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


HERE = os.path.dirname(os.path.abspath(__file__))
DATE = "November 18, 2026"  # of the pages that are written by hand, which these go with


def main():
    etch, version, folder = sys.argv[1:4]
    os.makedirs(folder, exist_ok=True)
    write(folder, "etch-llvm.1", [".so man1/etch.1"])
    for name, summary in help_text.commands(etch):
        write(folder, f"etch-{name}.1", command_page(etch, name, summary))
    write(folder, "etch.1", main_page(etch, version))


main()
