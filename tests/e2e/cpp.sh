#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# C++ as C: functions, threads and places are named as the source has them, whatever the linker, the library and the optimiser make of
# them; objects of library classes are named as a C++ programmer writes them.
. "$(dirname "$0")/lib.sh"
programs=$ETCH_SOURCE/tests/programs/cpp
cd "$work"
line() { grep -n "//@$2\$" "$programs/$1" | cut -d: -f1; } # FILE LABEL

# crash NAME SOURCE PROGRAM ARGUMENT...: one recorded failure, sketched as NAME.json
crash() {
  local name=$1 source=$2 program=$3
  shift 3
  "$ETCH" record --source "$source" -o "$name.etch" "./$program" "$@" >/dev/null 2>&1 && fail "$program $* did not fail"
  expect 0 "$ETCH" sketch "$program" "$name.etch" --json "$name.json"
}
# says FILE EXPRESSION: a Python expression over the sketch `s` is true
says() {
  checks=$((checks + 1))
  python3 - "$1" "$2" <<'PY' || fail "$1: not $2"
import json, sys
s = json.load(open(sys.argv[1]))
p = s["failing_place"]
names = [t["name"] for t in s["threads"]]
sys.exit(0 if eval(sys.argv[2]) else print(s["headline"], p, names) or 1)
PY
}

# The whole loop on the smallest program that used to end it, and the same in C with a function that the linker knows by another name.
printf 'static void f(int *p) { *p = 1; }\nint main(int c, char **) { f(c > 1 ? &c : nullptr); }\n' >a.cpp
"$ETCH" c++ -g a.cpp -o a
expect 0 "$ETCH" diagnose --no-lab --fresh --source none --runs 4 -- ./a
has out "SIGSEGV in f()  a.cpp:1"
printf 'void f(int *p) __asm__("renamed");\nvoid f(int *p) { *p = 1; }\nint main(int c, char **v) { (void)v; f(c > 1 ? &c : 0); }\n' >b.c
"$ETCH" cc -g b.c -o b
expect 0 "$ETCH" diagnose --no-lab --fresh --source none --runs 4 -- ./b
has out "SIGSEGV in f()  b.c:2"

for level in -O0 -O2; do
  "$ETCH" c++ --record -std=c++17 -g $level "$programs/names.cpp" -o names$level -pthread
  for source in soft none; do
    at=$source$level
    crash plain$at $source names$level plain
    says plain$at.json "s['headline'] == 'SIGSEGV in touch()' and p['line'] == $(line names.cpp touch)"
    says plain$at.json "p['signature'] == '(anonymous namespace)::touch(int*)'"
    crash template$at $source names$level template
    says template$at.json "s['headline'] == 'SIGSEGV in Box::read()' and p['line'] == $(line names.cpp read)"
    says template$at.json "'Box<long>::read<int>(int const*) const' in p['signature']"
    crash header$at $source names$level header
    says header$at.json "s['headline'] == 'SIGSEGV in main()' and p['line'] == $(line names.cpp header)"
    crash thread$at $source names$level thread
    says thread$at.json "p['line'] == $(line names.cpp touch) and 'worker' in names"
    says thread$at.json "not any('std::' in n or 'State_impl' in n for n in names)"
    crash lambda$at $source names$level lambda
    says lambda$at.json "s['headline'] == 'SIGSEGV in main::{lambda:$(line names.cpp lambda)}()' and p['line'] == $(line names.cpp inside)"
    says lambda$at.json "'main::{lambda:$(line names.cpp lambda)}' in names"
  done
  "$ETCH" c++ -std=c++20 -g $level "$programs/coroutine.cpp" -o coroutine$level
  crash coroutine$level none coroutine$level null
  says coroutine$level.json "s['headline'] == 'SIGSEGV in count()' and p['line'] == $(line coroutine.cpp use)"
done

# Locks are header code too: a deadlock names the user's two lines.
"$ETCH" c++ --record -std=c++17 -g "$programs/locks.cpp" -o locks -pthread
expect 0 "$ETCH" record --source soft -o free.etch ./locks
"$ETCH" record --source soft --hang 2 --kill -o dead.etch ./locks dead >/dev/null 2>&1 && fail "the deadlock was no failure"
expect 0 "$ETCH" sketch locks dead.etch free.etch --json locks.json
says locks.json "p['line'] == $(line locks.cpp second) and s['predictors'][0]['kind'] == 'lock_order'"
says locks.json "{q['line'] for q in s['predictors'][0]['statements']} == {$(line locks.cpp first), $(line locks.cpp second)}"

# A variable is watched by its name in the source, not by the linker's.
printf 'namespace {\nvolatile int hits;\n}\nint main() { for (int i = 0; i < 3; i++) hits = hits + 1; }\n' >hits.cpp
"$ETCH" c++ -g hits.cpp -o hits
for source in $(has_watchpoints && echo none) $(has_vpt && echo vpt); do
  expect 0 "$ETCH" record --source $source --watch hits -o hits.etch ./hits
  expect 0 "$ETCH" info hits.etch
  grep -qE 'accesses +[1-9]|[1-9][0-9]* accesses' out || { cat out >&2; fail "hits was not watched with $source"; }
done

# What a line reads, by the names that the line itself has for it.
"$ETCH" c++ -std=c++17 -g "$programs/members.cpp" -o members
reads() { # LABEL NAME
  expect 0 "$ETCH" slice members --at "members.cpp:$(line members.cpp "$1")" --json
  checks=$((checks + 1))
  python3 - out "$(line members.cpp "$1")" "$2" <<'PY' || fail "line @$1 does not read $2"
import json, sys
names = [o["name"] for s in json.load(open(sys.argv[1]))["statements"] if s["place"]["line"] == int(sys.argv[2]) for o in s["operands"]]
sys.exit(0 if sys.argv[3] in names else print(names) or 1)
PY
}
reads shared 'this->shared_'
reads unique 'this->unique_'
reads vector 'this->list_.begin()'
reads atomic 'this->hits_'
reads optional 'this->best_.has_value()'
reads string 'this->name_.size()'
reads base 'this->level_'
reads arrow 'this->unique_->weight'
reads capture 'store'
reads reference 'key.size()'
# And who wrote it is in the slice, at the user's line.
expect 0 "$ETCH" slice members --at "members.cpp:$(line members.cpp shared)"
has out 'shared_ = std::make_shared<Node>();'
! grep -q '/usr/include' out || fail "a statement of a system header is in the slice"
done_checking
