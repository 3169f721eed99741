# SPDX-License-Identifier: MIT
"""Reads what `etch help COMMAND` prints. The man pages and the completions are made of it, so that an option is described once."""
import re
import subprocess

OPTION = re.compile(r"  (-{1,2}[A-Za-z].*)")


class Option:
    """One entry of a list of options: its spellings with what each takes, and its text."""

    def __init__(self, head, text):
        self.head, self.text = head, text
        self.names, self.spelled, self.value = [], [], None  # with their values; with those that the help shows
        self.may_lack_value = "[=" in head
        self.joined = "=" in head.split(" ")[0]
        for part in reversed(head.split(", ")):  # "-o, --output FILE": both take one; "--html FILE, --all": the first does
            name, value = re.fullmatch(r"([^ =\[]+)(?:\[?[= ](.*?)\]?)?", part).groups()
            self.names.insert(0, (name, value or self.value))
            self.spelled.insert(0, (name, value))
            self.value = value or self.value

    def choices(self):
        """The words of a text like "soft: ...; lab: ...", or the only word of "--as insn"."""
        if self.value and re.fullmatch(r"[a-z][a-z-]+", self.value):
            return [self.value]
        words = re.findall(r"(?:^|; ?)([a-z][a-z0-9]*): ", " ".join(self.text))
        return words if len(words) > 1 else []


class Section:
    """A heading ("" for the first), and blocks: ("text", lines), ("options", [Option]), ("verbatim", lines)."""

    def __init__(self, title):
        self.title, self.blocks = title, []


def run(etch, *words):
    done = subprocess.run([etch, *words], stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout


def commands(etch):
    """[(name, summary)], in the order of etch --help."""
    return re.findall(r"^  ([a-z+-]+) +([^-\s].*)$", run(etch, "--help").split("\n\n")[2], re.M)


def split_option(line, column):
    """The head and the first words of the text. Two spaces divide them, or the column of the list, or neither."""
    body = line[2:]
    found = re.match(r"(\S.*?)  +(\S.*)", body)
    if found:
        return found.group(1), [found.group(2)]
    if column and len(line) > column and line[column - 1] == " ":
        return line[2:column].rstrip(), [line[column:]]
    return body, []


def options(lines):
    """The entries of a list, or None where `lines` are not one."""
    if not lines or not OPTION.match(lines[0]):
        return None
    columns = [len(line) - len(line.lstrip()) for line in lines if line.startswith("    ")]
    columns += [len(m.group(1)) + 2 for m in (re.match(r"  (-.*?  +)\S", line) for line in lines) if m]
    column = max(set(columns), key=columns.count) if columns else None
    found, shared = [], []
    for line in lines:
        if OPTION.match(line):
            head, text = split_option(line, column)
            if head.endswith(","):  # two options with one text
                shared.append(head.rstrip(","))
                continue
            heads = shared + [head]
            if re.match(r"(--\S+ [A-Z]+, )+--\S+ [A-Z]+$", head):
                heads = head.split(", ")
            found += [Option(h, text) for h in heads]
            shared = []
        elif line.startswith("   ") and found:
            last = found[-1].text
            last.append(line.strip())
        else:
            return None
    return found


def parse(text):
    """(usage lines, [Section])"""
    paragraphs = [p.split("\n") for p in text.rstrip("\n").split("\n\n")]
    usage = [line.replace("usage:", "      ", 1).strip() for line in paragraphs[0]]
    sections = [Section("")]
    for lines in paragraphs[1:]:
        title = re.fullmatch(r"([a-z][^:]*):", lines[0])
        if title:
            sections.append(Section(title.group(1)))
            lines = lines[1:]
        while lines:
            n = next((i for i, line in enumerate(lines) if i and line.startswith(" ") != lines[0].startswith(" ")), len(lines))
            part, lines = lines[:n], lines[n:]
            found = options(part)
            if found:
                sections[-1].blocks.append(("options", found))
            elif part[0].startswith(" "):
                sections[-1].blocks.append(("verbatim", [line.strip() for line in part]))
            else:
                sections[-1].blocks.append(("text", part))
    return usage, sections


def all_options(sections):
    return [o for s in sections for kind, block in s.blocks if kind == "options" for o in block]
