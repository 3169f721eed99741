# SPDX-License-Identifier: MIT
# What the end-to-end tests share. Each test sources it first: . "$(dirname "$0")/lib.sh"
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checks=0
# A slow machine must not make functions dark. soft_dark.sh tests the budget.
export ETCH_RING_BUDGET=off

# fail MESSAGE: ends the test
fail() {
  echo "FAIL: $*" >&2
  exit 1
}

# skip MESSAGE: ends the test without a verdict
skip() {
  echo "skipped: $*"
  exit 77
}

# can WHAT: whether the doctor says so, in Python: can 'd["qemu_plugins"]'
can() {
  "$ETCH" doctor --json | python3 -c 'import json,sys; d = json.load(sys.stdin); sys.exit(0 if eval(sys.argv[1]) else 1)' "$1"
}

# has_vpt, has_watchpoints: whether this machine can record with them
has_vpt() { can 'd["qemu_plugins"] and d["vpt_plugin"]'; }
has_watchpoints() { can 'd["watchpoints"]["delivered"]'; }

# need_vpt: for tests of vpt itself
need_vpt() {
  has_vpt || skip "no QEMU user mode that takes plugins, so no vpt"
}

# choose_flow: for tests of what comes after recording. Sets flow to the source that records control flow and values here: vpt, or
# soft where there is no vpt; and recorder to what etch cc needs for it. `auto` takes the same one.
choose_flow() {
  flow=vpt recorder=''
  has_vpt && return
  flow=soft recorder=--record
  has_watchpoints || skip "no QEMU user mode that takes plugins, so no vpt, and no hardware watchpoints for soft"
}

# running NAME: whether the program of that name in $work runs, by itself or in QEMU, which has its path among its arguments
running() {
  local pid
  ! pgrep -f "$work/$1" >/dev/null || return 0
  for pid in $(pgrep -x "$1"); do
    [ ! "/proc/$pid/exe" -ef "$work/$1" ] || return 0
  done
  return 1
}

# expect STATUS COMMAND...: runs it, output in $work/out and $work/err
expect() {
  local want=$1 got=0
  shift
  "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
  checks=$((checks + 1))
  [ "$got" -eq "$want" ] || { cat "$work/out" "$work/err" >&2; fail "'$*' exited with $got, not $want"; }
}

# has FILE TEXT: the file has the text, literally
has() {
  checks=$((checks + 1))
  grep -qF -- "$2" "$1" || { cat "$1" >&2; fail "no '$2' in $1"; }
}

# same FILE FILE
same() {
  checks=$((checks + 1))
  diff -u "$1" "$2" >&2 || fail "$1 and $2 differ"
}

# done_checking: says how many checks passed; a test that made none has failed
done_checking() {
  [ "$checks" -gt 0 ] || fail "nothing was checked"
  echo "$checks checks passed"
}

# own_memory "$@": the test goes on with a /dev/shm of its own, where it can say what is in it; skipped where that cannot be had
own_memory() {
  local as=
  [ -z "${OWN_MEMORY:-}" ] || { mount -t tmpfs -o mode=1777 none /dev/shm || skip "no /dev/shm of its own"; return 0; }
  [ "$(id -u)" -eq 0 ] || as=-r
  unshare $as -m true 2>/dev/null || skip "no mount namespace can be had"
  rm -rf "$work"
  OWN_MEMORY=1 exec unshare $as -m --propagation private bash "$0" "$@"
}

# program_of PID: the program that this etch runs, which is not its watchdog
program_of() {
  local child
  for child in $(cat /proc/"$1"/task/*/children); do
    [ "$(cat /proc/"$child"/comm)" = etch-watchdog ] || { echo "$child"; return 0; }
  done
  return 1
}
