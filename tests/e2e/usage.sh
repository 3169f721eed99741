#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What every command promises: help with examples, exit status 2 and a way out for wrong words.
. "$(dirname "$0")/lib.sh"
expect 0 "$ETCH" --help
cp "$work/out" "$work/help"
commands=$(sed -n 's/^  \([a-z+]\{2,\}\)  *.*/\1/p' "$work/help" | grep -v '^etch$')
[ "$(echo "$commands" | wc -w)" -ge 2 ] || fail "no commands are listed"
for c in $commands; do
  expect 0 "$ETCH" help "$c"
  has "$work/out" "usage: etch $c"
  has "$work/out" "examples:"
  case $c in cc | c++) continue ;; esac # everything behind these two is the compiler's
  expect 0 "$ETCH" "$c" --help
  has "$work/out" "usage: etch $c"
  got=0
  "$ETCH" "$c" --no-such-option >"$work/out" 2>"$work/err" </dev/null || got=$?
  [ "$got" -eq 2 ] || { [ "$c" = record ] && [ "$got" -eq 125 ]; } || fail "etch $c --no-such-option exits with $got"
  has "$work/err" "etch $c: "
  has "$work/err" "(try: etch $c --help)"
done
expect 0 "$ETCH" --version
has "$work/out" "etch 0."
expect 2 "$ETCH"
has "$work/err" "usage: etch COMMAND"
expect 2 "$ETCH" frobnicate
has "$work/err" "etch: there is no command 'frobnicate' (try: etch --help)"
expect 2 "$ETCH" info
expect 2 "$ETCH" info a b
expect 2 "$ETCH" doctor now
expect 2 env ETCH_LOG=loud "$ETCH" doctor
expect 2 env ETCH_LOG=debug,kitchen:info "$ETCH" doctor
[ "$(grep -c "'kitchen:info' is neither" "$work/err")" = 1 ] || { cat "$work/err" >&2; fail "an unknown room is not said once"; }
expect 0 env ETCH_LOG=order,flow:debug "$ETCH" --version
[ ! -s "$work/err" ] || fail "a room that does nothing says something"
done_checking
