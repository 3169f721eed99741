#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The man pages and the completions: they say what --help says, --help names the options that the commands take, and no page has a
# warning of man or mandoc.
. "$(dirname "$0")/lib.sh"
command -v man >/dev/null && command -v mandoc >/dev/null || skip "man-db or mandoc is not installed"
man=$ETCH_BUILD/man
completions=$ETCH_BUILD/completions
commands=$("$ETCH" --help | sed -n 's/^  \([a-z+-]\{2,\}\)  *.*/\1/p' | grep -v '^etch$')

for page in "$man"/*.1 "$ETCH_SOURCE"/docs/man/*.[57]; do
  [ "${page##*/}" != etch-llvm.1 ] || continue # another name of etch(1)
  expect 0 mandoc -T lint -W warning "$page"
  [ ! -s "$work/out" ] || { cat "$work/out" >&2; fail "mandoc warns of $page"; }
  expect 0 env LC_ALL=C.UTF-8 MANROFFSEQ= MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page"
  [ ! -s "$work/err" ] || { cat "$work/err" >&2; fail "man warns of $page"; }
done

# Every word of the help of a command is on its page, in the same order.
words() { tr -s '[:space:]' '\n' | sed '/^$/d'; }
for c in $commands; do
  "$ETCH" help "$c" | sed 's/^usage: //; s/^\([a-z][a-z, ]*\):$/\U\1/' | words >"$work/help"
  mandoc -T utf8 -O width=500 "$man/etch-$c.1" | sed 's/.\x08//g' | sed '1,/^SYNOPSIS/d; /^SEE ALSO/,$d; /^DESCRIPTION$/d' | words >"$work/page"
  [ -s "$work/help" ] || fail "no help of $c"
  same "$work/help" "$work/page"
done

# The options that getopt knows and those of the help are the same, with a value or without.
checks=$((checks + 1))
python3 - "$ETCH_SOURCE" "$ETCH" $commands <<'END' || fail "the help and the options differ"
import glob, re, sys
sys.path.insert(0, sys.argv[1] + "/docs/man")
import help_text
etch, commands, bad, seen = sys.argv[2], sys.argv[3:], 0, 0
FIELD = re.compile(r'\{"([a-z-]+)", (no|required|optional)_argument')
def code(path):
    return open(path, encoding="utf-8").read()
reading = dict(re.findall(r'"(max-memory|max-output|source-root)"', code(sys.argv[1] + "/cli/reading.c")) and
               {n: "required" for n in ("max-memory", "max-output", "source-root")})
for path in glob.glob(sys.argv[1] + "/cli/*.c"):
    text = code(path)
    names = [n for n in re.findall(r'\.name = "([a-z+-]+)"', text) if n in commands]
    fields = dict(FIELD.findall(text))
    if len(names) != 1 or not fields:
        continue
    usage, sections = help_text.parse(help_text.run(etch, "help", names[0]))
    known = {n[2:]: "optional" if o.may_lack_value else "required" if v else "no"
             for o in help_text.all_options(sections) for n, v in o.names if n.startswith("--")}
    if ".reads = true" in text:
        fields.update(reading)
    fields.pop("help")
    for name in sorted(set(fields) | set(known)):
        seen += 1
        if name not in known and "--" + name in " ".join(usage):
            continue
        if name not in fields and f'"--{name}"' in text: # not read by getopt
            continue
        if fields.get(name) != known.get(name):
            print(f"etch {names[0]} --{name}: the command takes {fields.get(name)}, the help says {known.get(name)}")
            bad += 1
if seen < 100:
    print("only", seen, "options were seen")
sys.exit(bad > 0 or seen < 100)
END

# Every variable that etch reads is in etch(1), or is one of those that are for tests and for its own children.
inner='ETCH_(CLOCK_ROOT|CORE_PATTERN_FILE|LAB|LAB_FD|RECORDED|SYNC|SYNC_PRELOAD)'
for name in $(grep -rhoE '"ETCH_[A-Z_]+=?"' --include='*.[ch]' "$ETCH_SOURCE"/{base,cli,collector,diagnose,decoder,sketch,slicer,binary} |
  tr -d '"=' | grep -vxE "$inner" | sort -u); do
  has "$man/etch.1" "$name"
done

# complete WORD...: what bash offers for the last word
complete_bash() {
  bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _etch; printf "%s\n" "${COMPREPLY[@]}"' bash "$completions/etch" "$@" |
    sort >"$work/out"
}
offers() {
  printf '%s\n' "$@" | sort >"$work/want"
  same "$work/want" "$work/out"
}
complete_bash etch ver
offers verify-fix
complete_bash etch record --source ''
offers auto lab none pt soft vpt
complete_bash etch decode --as ''
offers branch call chrome insn line perf-data
complete_bash etch replay --ti
offers --timeout --times
complete_bash etch help confi
offers confirm
mkdir "$work/folder"
touch "$work/folder.txt"
complete_bash etch info "$work/fol"
offers "$work/folder" "$work/folder.txt"
complete_bash etch record --rings "$work/fol"
offers "$work/folder"
for c in $commands; do # every option of the help is offered
  complete_bash etch "$c" --
  for o in $("$ETCH" help "$c" | sed -n 's/^  \(-., \)\{0,1\}\(--[a-z-]*\).*/\2/p'); do has "$work/out" "$o"; done
done
if command -v zsh >/dev/null; then expect 0 zsh -n "$completions/_etch"; fi
if command -v fish >/dev/null; then
  expect 0 fish -c 'source $argv[1]; complete -C "etch record --source "' "$completions/etch.fish"
  [ "$(cut -f 1 "$work/out" | tr '\n' ' ')" = "auto lab none pt soft vpt " ] || fail "fish offers other sources"
fi

# Did you mean
expect 2 "$ETCH" recrod
has "$work/err" "there is no command 'recrod'; did you mean record? (try: etch --help)"
expect 2 "$ETCH" info --jsno run.etch
has "$work/err" "etch info: there is no option '--jsno'; did you mean --json? (try: etch info --help)"
expect 2 "$ETCH" info --max-memry 1G run.etch
has "$work/err" "did you mean --max-memory?"
expect 2 "$ETCH" info --json=1 run.etch
has "$work/err" "etch info: option '--json' takes no value"
expect 2 "$ETCH" diagnose --record ./a.out # an option of etch cc
has "$work/err" "there is no option '--record'"
done_checking
