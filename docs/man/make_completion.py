#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_completion.py ETCH FOLDER: completions for bash, zsh and fish in FOLDER, made of what --help says."""
import os
import re
import sys

import help_text

FOLDERS = ("DIR", "DIRS", "FOLDER")
FILES = ("FILE", "F", "BUNDLE", "PROG", "BIN", "FILE.svg", "HANDLER", *FOLDERS)
NOTE = "# SPDX-License-Identifier: MIT\n# Made from the output of --help by docs/man/make_completion.py.\n"


class Entry:
    """An option by one of its names: the value it takes, the words that the value may be, and what it does."""

    def __init__(self, name, value, optional, choices, text):
        self.name, self.value, self.optional, self.choices = name, value, optional, choices
        clause = re.split(r"[;.] | \(", text)[0]
        self.text = clause if len(clause) <= 72 else clause[:72].rsplit(" ", 1)[0] + " ..."

    def kind(self):
        if not self.value or self.optional:
            return "none"
        if self.choices:
            return "words"
        if self.value in FOLDERS:
            return "folder"
        return "file" if self.value in FILES else "any"


def entries(etch, command):
    """Name to Entry. An option that is listed twice has the choices of both."""
    found = {"--help": Entry("--help", None, False, [], "explain the command")}
    for o in help_text.all_options(help_text.parse(help_text.run(etch, "help", command))[1]):
        for name, value in o.names:
            if name in found:
                found[name].choices += [c for c in o.choices() if c not in found[name].choices]
            else:
                found[name] = Entry(name, value, o.may_lack_value, o.choices(), " ".join(o.text))
    return found


def bash(all_entries):
    out = [NOTE + "_etch()", "{",
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} options= files= IFS=$'\\n'",
           "    COMPREPLY=()",
           "    if ((COMP_CWORD == 1)); then",
           "        COMPREPLY=($(compgen -W $'" + "\\n".join([*all_entries, "help", "--help", "--version"]) + "' -- \"$cur\"))",
           "        return", "    fi",
           "    case ${COMP_WORDS[1]}:$prev in"]
    for command, options in all_entries.items():
        for o in options.values():
            pattern = f"    {command}:{o.name})"
            if o.kind() == "words":
                out.append(pattern + " COMPREPLY=($(compgen -W $'" + "\\n".join(o.choices) + "' -- \"$cur\")); return ;;")
            elif o.kind() == "folder":
                out.append(pattern + ' COMPREPLY=($(compgen -d -- "$cur")); return ;;')
            elif o.kind() == "file":
                out.append(pattern + ' COMPREPLY=($(compgen -f -- "$cur")); return ;;')
            elif o.kind() == "any":
                out.append(pattern + " return ;;")
    out += ["    esac", "    case ${COMP_WORDS[1]} in"]
    for command, options in all_entries.items():
        out.append(f"    {command}) options=$'" + "\\n".join(options) + "' ;;")
    out += ["    help) COMPREPLY=($(compgen -W $'" + "\\n".join(all_entries) + "' -- \"$cur\")); return ;;",
            "    esac",
            "    if [[ $cur == -* ]]; then",
            '        COMPREPLY=($(compgen -W "$options" -- "$cur"))',
            "    else",
            '        COMPREPLY=($(compgen -f -- "$cur"))',
            "    fi", "}", "complete -o filenames -F _etch etch"]
    return "\n".join(out) + "\n"


def zsh_text(text):
    for c in "\\[]:'":
        text = text.replace(c, "'\\''" if c == "'" else "\\" + c)
    return text


def zsh(all_entries, summaries):
    out = ["#compdef etch", NOTE + "_etch() {", "    local -a commands options"]
    out.append("    commands=(" + " ".join(f"'{c}:{zsh_text(summaries[c])}'" for c in all_entries) + ")")
    out += ["    if (( CURRENT == 2 )); then", "        _describe command commands", "        return", "    fi", "    case $words[2] in"]
    actions = {"folder": "_files -/", "file": "_files", "any": " "}
    for command, options in all_entries.items():
        specs = []
        for o in options.values():
            spec = f"{o.name}[{zsh_text(o.text)}]"
            if o.kind() != "none":
                action = "(" + " ".join(o.choices) + ")" if o.choices else actions[o.kind()]
                spec += f":{zsh_text(o.value)}:{action}"
            specs.append(f"'*{spec}'")
        out += [f"    {command}) options=(", *("        " + s for s in specs), "    ) ;;"]
    out += ["    help) _describe command commands; return ;;", "    esac",
            "    shift words", "    (( CURRENT-- ))", "    _arguments -S $options '*:file:_files'", "}", '_etch "$@"']
    return "\n".join(out) + "\n"


def fish_text(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(all_entries, summaries):
    out = [NOTE.rstrip()]
    for c in all_entries:
        out.append(f"complete -c etch -f -n __fish_use_subcommand -a {c} -d {fish_text(summaries[c])}")
    for command, options in all_entries.items():
        for o in options.values():
            line = f"complete -c etch -n '__fish_seen_subcommand_from {command}'"
            line += f" -l {o.name[2:]}" if o.name.startswith("--") else f" -s {o.name[1:]}"
            if o.kind() == "words":
                line += " -x -a " + fish_text(" ".join(o.choices))
            elif o.kind() == "folder":
                line += " -x -a '(__fish_complete_directories)'"
            elif o.kind() != "none":
                line += " -r" if o.kind() == "file" else " -x"
            out.append(line + f" -d {fish_text(o.text)}")
    return "\n".join(out) + "\n"


def main():
    etch, folder = sys.argv[1:3]
    summaries = dict(help_text.commands(etch))
    found = {c: entries(etch, c) for c in summaries}
    os.makedirs(folder, exist_ok=True)
    for name, text in ("etch", bash(found)), ("_etch", zsh(found, summaries)), ("etch.fish", fish(found, summaries)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)


main()
