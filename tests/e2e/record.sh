#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# etch record from the outside: the program's input, output, status and signals are its own; the bundle is whole whatever
# ends the program, and readable when etch itself is killed.
. "$(dirname "$0")/lib.sh"
source=vpt
has_vpt || source=none # all but what only vpt has
programs=$ETCH_BUILD/tests/programs
export ASAN_OPTIONS=detect_leaks=1
cd "$work"

# of_this_run FILE: without the lines about what an etch left that another test killed
of_this_run() { sed '/because etch was killed/d; /killed etch process/d' "$1"; }

# recorded STATUS PROGRAM...: records it, and the bundle verifies
recorded() {
  local want=$1
  shift
  expect "$want" "$ETCH" record --source $source -o run.etch -- "$@"
  cp out program.out
  of_this_run err >program.err
  expect 0 "$ETCH" info --verify run.etch
  expect 0 "$ETCH" info --json run.etch
  cp out info.json
}

# await FILE TEXT: until the file has it
await() {
  for _ in $(seq 500); do
    grep -qF "$2" "$1" 2>/dev/null && return 0
    sleep 0.02
  done
  fail "'$2' did not come"
}

# ---- Status and streams
recorded 0 "$programs/loops"
echo "loops 2123135168 7" >want
same want program.out
[ $source != vpt ] || has program.err "etch record: vpt, 1 thread, "
has program.err "nothing lost"
[ "$(wc -l <program.err)" -eq 1 ] || fail "more than one line on standard error"
has info.json '"exit_status": 0'
printf 'one\ntwo\nthree\n' >input
got=0
"$ETCH" record --source $source -o run.etch -- "$programs/cat" <input >output 2>errors || got=$?
[ "$got" -eq 3 ] || fail "cat's own status 3 became $got"
same input output
[ "$(of_this_run errors | head -n 1)" = ONE ] || fail "the program's standard error is not its own"
recorded 0 "$programs/threads"
has program.err "9 threads"
recorded 0 "$programs/threads-static"
recorded 0 "$programs/forks"
has program.out "from the child"
[ $source != vpt ] || has program.err "5 threads in 4 processes" # natively a child is not recorded

# ---- Failures
recorded 139 "$programs/segv"
has program.err "Segmentation fault in thread"
has info.json '"signal": 11'
has info.json '"fault_address": "0x8"'
ip=$(sed -n 's/.*"ip": "0x\([0-9a-f]*\)".*/\1/p' info.json | head -n 1)
[ $source != vpt ] || [ "$(((0x$ip - 0x4000000000)))" -gt 0 ] || fail "the failing instruction's address is $ip"
recorded 139 "$programs/wild"
has info.json '"ip": "0x1234"'
recorded 134 "$programs/aborts"
has program.err "argc > 100"
grep -q "qemu:" program.err && fail "QEMU speaks on the program's standard error"
has program.err "Aborted in thread"
recorded 139 "$programs/crash"
has program.err "2 threads"

# ---- Killed from outside
"$ETCH" record --source $source -o run.etch -- "$programs/endless" >running 2>errors &
etch=$!
await running endless
pid=$(program_of $etch)
sleep 0.2
kill -KILL "$pid"
got=0
wait $etch || got=$?
[ "$got" -eq 137 ] || fail "after SIGKILL the status is $got"
[ $source != vpt ] || has errors "Killed"
expect 0 "$ETCH" info --verify run.etch
for signal in INT:130 TERM:143; do
  # A shell's background jobs ignore SIGINT; this one shall not
  setsid env --default-signal=INT "$ETCH" record --source $source -o run.etch -- "$programs/endless" wait >running 2>errors &
  etch=$!
  await running endless
  # To the whole group, as a terminal does with Ctrl-C
  kill -"${signal%:*}" -- -"$etch"
  got=0
  wait $etch || got=$?
  [ "$got" -eq "${signal#*:}" ] || fail "after SIG${signal%:*} the status is $got"
  expect 0 "$ETCH" info --verify run.etch
  : >running
done

# ---- etch itself killed: what was written is there, the program lives on
"$ETCH" record --source $source -o run.etch -- "$programs/endless" >running 2>errors &
etch=$!
await running endless
pid=$(program_of $etch)
sleep 0.5
kill -KILL $etch
wait $etch 2>/dev/null || true
sleep 0.3
kill -0 "$pid" || fail "the program died with etch"
kill -KILL "$pid"
expect 0 "$ETCH" info run.etch
has out ", cut"
[ $source != vpt ] || has out "of control flow"
expect 1 "$ETCH" info --verify run.etch
# What it left in memory is told, kept, and can be had.
left() { grep -lsF " $PWD/run.etch" /dev/shm/etch-"$(id -u)"*/run-*/story || true; }
folder=$(left)
[ $source = none ] || [ -n "$folder" ] || fail "nothing is left to recover"
if [ -n "$folder" ]; then
  expect 0 "$ETCH" record --recover="$(dirname "$folder")" -o recovered.etch
  expect 0 "$ETCH" info --verify recovered.etch
fi
recorded 0 "$programs/loops"
[ -z "$(left)" ] || fail "folders are left in /dev/shm"

# ---- Emulated watches, and the newest part of what ran
if [ $source = vpt ]; then
  expect 0 "$ETCH" record --source $source -o run.etch --watch steps --watch total:w -- "$programs/threads"
  has err "16009 accesses" # 16000 atomic additions, one last read of them, 8 writes
  expect 0 "$ETCH" info --verify run.etch
  expect 0 "$ETCH" record --source $source -o run.etch --watch shared --watch large:w -- "$programs/watched"
  expect 0 "$ETCH" info --records run.etch
  python3 - out >accesses <<'PY'
import json, sys
for line in open(sys.argv[1]):
    record = json.loads(line)
    if "watch" in record:
        w = record["watch"]
        print("watch", w["name"], w["size"], w.get("initial_value", "unknown"), w["emulated"])
    for a in record.get("accesses", {}).get("accesses", []):
        print(a["watch"], "r" if a["read"] else "-", "w" if a["write"] else "-", a["size"], a["value"])
PY
  cat >want <<'END'
watch shared 4 0x5 True
watch large:w 24 unknown True
1 - w 4 0x7
1 r - 4 0x7
1 r - 4 0x7
1 - w 4 0xb
1 r w 4 0x14
1 - w 1 0x114
2 - w 1 0x78
END
  same want accesses
  expect 125 "$ETCH" record --source $source -o run.etch --watch @no_such_function:8 -- "$programs/threads"
  has err "cannot watch '@no_such_function:8': the program has no symbol"
  expect 125 "$ETCH" record --source $source -o run.etch --watch nothing_of_that_name -- "$programs/threads"
  has err "has no variable of that name"
  expect 125 "$ETCH" record --source $source -o run.etch --watch 12: -- "$programs/threads"
  has err "cannot watch '12:'"
  expect 0 "$ETCH" record --source $source -o run.etch --snapshot 16K -- "$programs/exceptions"
  has err "older than the snapshot"
  expect 0 "$ETCH" info --verify run.etch
fi

# ---- Wrong input
expect 125 "$ETCH" record --source $source -o run.etch -- ./no-such-program
has err "cannot run ./no-such-program: No such file or directory"
expect 125 "$ETCH" record --source $source -o run.etch -- no-such-program
has err " in PATH"
echo text >text && chmod +x text
expect 125 "$ETCH" record --source $source -o run.etch -- ./text
has err "$([ $source = vpt ] && echo "is not an x86-64 program" || echo "Exec format error")"
expect 125 "$ETCH" record --source $source -o run.etch -- "$work"
expect 125 "$ETCH" record -o run.etch
expect 125 "$ETCH" record --source magic -- "$programs/loops"
has err "there is no source 'magic'"
expect 125 "$ETCH" record --source $source -o /nonexistent/run.etch -- "$programs/loops"
expect 125 env ETCH_VPT_PLUGIN=/nonexistent/plugin.so "$ETCH" record --source vpt -o run.etch -- "$programs/loops"
has err "there is no plugin /nonexistent/plugin.so"
expect 125 env PATH=/nonexistent ETCH_VPT_QEMU=/nonexistent/qemu "$ETCH" record --source vpt -o run.etch -- "$programs/loops"
has err "apt-get install qemu-user"

# ---- A QEMU that takes no plugins: vpt says so; auto goes on without control flow, and says what would give it
printf '#!/bin/sh\necho "qemu: unknown option" >&2\nexit 1\n' >no-plugins
chmod +x no-plugins
expect 125 env ETCH_VPT_QEMU="$work/no-plugins" "$ETCH" record --source vpt -o run.etch -- "$programs/loops"
has err "no-plugins takes no plugins"
if ! can 'd["intel_pt"]["usable"]'; then
  expect 0 env ETCH_VPT_QEMU="$work/no-plugins" "$ETCH" record -o run.etch -- "$programs/loops"
  has err "etch cc --record"
  has err "etch record: none, "
fi
if [ -w /dev/full ]; then
  expect 125 "$ETCH" record --source $source -o /dev/full -- "$programs/loops"
  has err "No space left on device"
fi

# ---- Scripts, PATH, the program's own LD_ variables
printf '#!/bin/sh -e\necho script "$0" "$1"\n' >script && chmod +x script
recorded 0 ./script word
has program.out "script ./script word"
recorded 7 sh -c 'exit 7'
expect 0 env LD_BIND_NOW=1 LD_LIBRARY_PATH=/x "$ETCH" record --source $source -o run.etch -- /usr/bin/env
has out "LD_BIND_NOW=1"
has out "LD_LIBRARY_PATH=/x"
done_checking
