#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that dies where no code is: called, jumped or returned to. Every view of etch decode shows the address behind the transfer,
# the list of instructions holds the transfer and nothing behind it, and the sketch ends at the transfer's line.
. "$(dirname "$0")/lib.sh"
need_vpt
cd "$work"
cat >nowhere.c <<'C'
#include <string.h>
static void (*volatile handler)(void);
static void *volatile garbage = (void *)0x7654320;

static __attribute__((noinline)) void return_to_garbage(void)
{
    void *volatile *frame = __builtin_frame_address(0);
    frame[1] = garbage;
} // return
static __attribute__((noinline)) int jump(void)
{
    __asm__ volatile("jmp *%0" : : "r"(garbage)); // jump
    return 1;
}
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "return") == 0)
        return_to_garbage();
    if (argc > 1 && strcmp(argv[1], "jump") == 0)
        return jump();
    if (argc > 1 && strcmp(argv[1], "call") == 0)
        handler = (void (*)(void))garbage;
    handler(); // call
    return 0;
}
C

line_of() { grep -n "// $1\$" nowhere.c | cut -d: -f1; }

# died PROGRAM CASE ADDRESS LINE
died() {
  local said="-> $3, where no code is known: the thread died there" view
  expect 139 "$ETCH" record --source vpt -o run.etch -- "./$1" "$2"
  for view in insn line call chrome; do
    expect 0 "$ETCH" decode run.etch --as $view
    [ "$(grep -c -- "$said" "$work/out")" = 1 ] || { tail -n 5 "$work/out" >&2; fail "$1 $2: --as $view does not show it"; }
  done
  expect 0 "$ETCH" decode run.etch --as branch --fields ip,addr
  [ "$(tail -n 2 "$work/out" | sed -n 's/.* //;1p')" = "$3" ] || fail "$1 $2: the last branch is $(tail -n 2 "$work/out" | head -n 1)"
  from=$(tail -n 2 "$work/out" | sed -n '1s/ .*//p')
  expect 0 "$ETCH" decode run.etch --as insn --fields ip
  [ "$(tail -n 1 "$work/out")" = "$from" ] || fail "$1 $2: the last instruction is not the transfer"
  expect 0 "$ETCH" sketch --json sketch.json "./$1" run.etch
  python3 -c "
import json
s = json.load(open('sketch.json'))
assert s['failing_place']['line'] == $4, s['failing_place']
assert int(s['failure']['fault_address'], 16) == 0x$3, s['failure']" || fail "$1 $2: the sketch does not end there"
}

for o in 0 2; do
  "$ETCH" cc -g -O$o -w -fno-omit-frame-pointer -fcf-protection=none nowhere.c -o nowhere-O$o
  died nowhere-O$o return 7654320 "$(line_of return)"
done
died nowhere-O0 null 0 "$(line_of call)"
died nowhere-O0 call 7654320 "$(line_of call)"
died nowhere-O2 jump 7654320 "$(line_of jump)"
echo "$checks checks: called, jumped and returned to nowhere"
