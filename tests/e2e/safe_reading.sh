#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Reading never trusts a byte: memory and output are bounded, a named file is opened only if it may be shown, nothing steers
# the terminal, rings of other users are left out, and the sandbox lets every command do its work.
. "$(dirname "$0")/lib.sh"
cd "$work"
tools=$ETCH_BUILD/tests
sanitized=0
[ ! -e "$tools/fuzz_runs" ] || sanitized=1
bound=$((sanitized ? 3000 : 1000)) # MiB

# quiet FILE...: no byte in them could steer a terminal
quiet() {
  checks=$((checks + 1))
  python3 - "$@" <<'PY' || fail "control characters in $*"
import sys
for name in sys.argv[1:]:
    text = open(name, "rb").read().decode("utf-8")
    for c in text:
        n = ord(c)
        bad = (n < 32 and c != "\n") or 0x7f <= n < 0xa0 or n == 0x61c or 0x200b <= n <= 0x200f
        bad = bad or 0x2028 <= n <= 0x202e or 0x2060 <= n <= 0x206f or n == 0xfeff
        if bad:
            sys.exit(f"{name}: U+{n:04X} in {text!r:.300}")
PY
}

# lacks FILE TEXT
lacks() {
  checks=$((checks + 1))
  ! grep -qF -- "$2" "$1" || { cat "$1" >&2; fail "'$2' is in $1"; }
}

# ---- A small file that unpacks to much: 40 records of accesses take 2 GB, 100 names 1.5 GB
"$tools/bomb" accesses.etch accesses 40
"$tools/bomb" images.etch images 100
[ "$(stat -c %s accesses.etch)" -lt 200000 ] || fail "the bomb is no small file"
expect 0 python3 "$ETCH_SOURCE/tests/tools/peak.py" $bound "$ETCH" decode accesses.etch
has err 'records were left out by the memory limit (try: --max-memory SIZE)'
expect 0 python3 "$ETCH_SOURCE/tests/tools/peak.py" $bound "$ETCH" info accesses.etch
has out '16000160'
expect 0 python3 "$ETCH_SOURCE/tests/tools/peak.py" $bound "$ETCH" info --json images.etch
python3 -c 'import json; assert json.load(open("out"))["records_not_kept"] > 50' || fail "what was not kept is not counted"
expect 0 env ETCH_MAX_UNPACKED=20M "$ETCH" info images.etch
has err 'the file unpacks to more than the reader allows (ETCH_MAX_UNPACKED)'
expect 2 "$ETCH" info --max-memory much images.etch
has err "'much' is no size"
expect 2 env ETCH_MAX_MEMORY=x "$ETCH" info images.etch
has err 'ETCH_MAX_MEMORY holds no size'

# ---- A program with a source line from a private file, from a pipe, and with names that steer
mkdir elsewhere project
echo 'root:$6$secret:1:0:99999' >elsewhere/shadow
mkfifo elsewhere/pipe
esc=$(printf '\033')
cat >project/prog.c <<SOURCE
#include <stdlib.h>
int *where;
void hush(void) __asm__("hush${esc}[2Jx");
__attribute__((noinline, nodebug)) void hush(void) {}
__attribute__((noinline)) void steer(int v)
{
    *where = v; /* ${esc}]0;title */
}
#line 1 "$work/elsewhere/shadow"
__attribute__((noinline)) static int first(char **argv) { return argv[0][0]; }
#line 1 "$work/elsewhere/pipe"
__attribute__((noinline)) static int second(char **argv) { return first(argv) + 1; }
#line 40 "prog.c"
int main(int argc, char **argv)
{
    hush();
    steer(second(argv) + argc);
    return 0;
}
SOURCE
cd project
"$ETCH" cc --record -g -O0 -w prog.c -o prog || fail "the program does not build"
"$ETCH" record -o run.etch --source soft ./prog "arg$esc[31m" $'\xc2\x9b1m\xe2\x80\xae' >/dev/null 2>record.err || true
[ -s run.etch ] || { cat record.err >&2; fail "no recording"; }
expect 0 timeout 60 "$ETCH" slice prog --failure run.etch
mv "$work/out" slice.out
has slice.out 'outside of the source folders'
has slice.out '*where = v'
lacks slice.out secret
quiet slice.out
expect 0 timeout 60 "$ETCH" sketch prog run.etch --all --html page.html --json data.json
mv "$work/out" sketch.out
for f in sketch.out page.html data.json; do lacks $f secret; done
quiet sketch.out data.json
expect 0 timeout 60 "$ETCH" slice prog --failure run.etch --source-root "$work/elsewhere:."
has "$work/out" secret
ETCH_SOURCE_ROOT=$work expect 0 timeout 60 "$ETCH" slice prog --failure run.etch
has "$work/out" secret
expect 0 timeout 60 "$ETCH" slice prog --failure run.etch --json
quiet "$work/out"

# ---- From another folder: the checksum of prog.c says that the compiler read it
# (a #line leaves a file without one: the plain program has one)
printf 'int *p;\nint main(void)\n{\n    *p = 1; /* the plain one */\n    return 0;\n}\n' >plain.c
"$ETCH" cc -g -O0 "$PWD/plain.c" -o "$work/plain" || fail "no plain program"
cd /
expect 0 "$ETCH" slice "$work/plain" --at plain.c:4
has "$work/out" 'the plain one'
cd "$work/project"
echo '/* other */' >>plain.c
cd /
expect 0 "$ETCH" slice "$work/plain" --at plain.c:4 --source-root /nowhere
lacks "$work/out" 'the plain one'
cd "$work/project"

# ---- Paths in a recording that are no files
for path in "$work/elsewhere/pipe" /dev/zero "$work"; do
  "$tools/edit_bundle" run.etch edited.etch "image.path=$path" image.build_id- || fail "edit_bundle"
  for form in line call; do
    expect 0 timeout 60 "$ETCH" decode edited.etch --as $form
  done
  expect 1 timeout 60 "$ETCH" slice "$path" --failure run.etch
done

# ---- Names that steer: every text of the recording, the files' names, the messages
bad=$'e\033[2J\x9b1m\xc2\x9b1m\xe2\x80\xaed\x7f\x07'
"$tools/edit_bundle" run.etch "$bad.etch" "image.path=/$bad" "thread.name=$bad" "failure.message=$bad" "host.kernel=$bad" \
  "host.cpu_model=$bad" "host.hypervisor=$bad" || fail "edit_bundle"
for command in "info" "info --json" "info --records" "info --verify" "decode --as line" "decode --as call" \
  "decode --as chrome"; do
  expect 0 "$ETCH" $command "$bad.etch"
  quiet "$work/out" "$work/err"
done
for command in info decode "sketch prog" "slice prog --failure" "record --plan"; do
  "$ETCH" $command "no$bad.etch" >"$work/out" 2>"$work/err" </dev/null && fail "$command reads what is not there"
  quiet "$work/out" "$work/err"
done
"$ETCH" "$bad" 2>"$work/err" && fail "there is no such command"
quiet "$work/err"
"$ETCH" sketch prog "$bad.etch" >"$work/out" 2>"$work/err" || true
quiet "$work/out" "$work/err"
quiet record.err
expect 0 "$ETCH" decode run.etch --as call
has "$work/out" 'hush?[2Jx'

# ---- A deep recursion, and the bound on output
cat >deep.c <<'SOURCE'
#include <stdlib.h>
__attribute__((noinline)) static int deep(int n) { return n ? deep(n - 1) + 1 : 0; }
int main(void) { return deep(3000) != 3000; }
SOURCE
"$ETCH" cc --record -O0 -g deep.c -o deep || fail "deep does not build"
expect 0 "$ETCH" record -o deep.etch --source soft ./deep
expect 0 "$ETCH" decode deep.etch --as call
[ "$(grep -c deep "$work/out")" -gt 1000 ] || fail "the recursion is not there"
[ "$(wc -L <"$work/out")" -lt 300 ] || fail "the indentation grows without end"
grep -q '\[[0-9]*\] deep' "$work/out" || fail "the depth is not told"
for form in insn call line; do
  expect 1 "$ETCH" decode deep.etch --as $form --max-output 10K
  [ "$(stat -c %s "$work/out")" -eq 10240 ] || fail "--max-output: $(stat -c %s "$work/out") bytes"
  has "$work/err" 'the output was cut at 10240 bytes (try: --max-output SIZE)'
done
expect 1 env ETCH_MAX_OUTPUT=100 "$ETCH" info deep.etch
has "$work/err" 'the output was cut at 100 bytes'

# ---- The sandbox: outputs get where they should, and it can be done without
mkdir out
expect 0 env ETCH_LOG=debug "$ETCH" decode deep.etch --as chrome -o out/trace.json
has "$work/err" 'sandbox: landlock'
[ -s out/trace.json ] || fail "no output in the sandbox"
expect 0 "$ETCH" decode deep.etch --as chrome --outp=out/again.json
same out/trace.json out/again.json
expect 0 env ETCH_SANDBOX=off ETCH_LOG=debug "$ETCH" info deep.etch
lacks "$work/err" 'sandbox'

# ---- Rings of other users in a folder that all may write to
mkdir rings
chmod 1777 rings
ETCH_RING=$PWD/rings ./deep || fail "deep fails"
expect 0 "$ETCH" record -o rings.etch --rings rings
lacks "$work/err" 'of other users'
if [ "$(id -u)" -eq 0 ]; then
  chown 65534 rings/*
  expect 125 "$ETCH" record -o foreign.etch --rings rings
  has "$work/err" '1 ring file of other users was left out'
  chown 65534 rings && chmod 700 rings # a folder of that user's own
  expect 0 "$ETCH" record -o private.etch --rings rings
else
  echo "not root: rings of other users not tried"
fi
mkdir links
ln -s "$PWD"/rings/* links/
expect 125 "$ETCH" record -o links.etch --rings links

# ---- Such names are opened in one place: base/input.c
cd "$ETCH_SOURCE"
bad=$(grep -nE '\b(open|openat|fopen|open64|fopen64)\(' decoder/*.c slicer/*.c diagnose/source_text.c cli/slice.c cli/info.c binary/elf.c \
  binary/object.c | grep -vE 'O_TMPFILE|O_WRONLY|"we?"|perf_recording.c.*standard_input|recording.c:.*open\(path|recording_bundle.c.*open\(path' || true)
[ -z "$bad" ] || fail "opened without base/input.h: $bad"
checks=$((checks + 1))
done_checking
