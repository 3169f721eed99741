# SPDX-License-Identifier: MIT
# Runs in the guest: records with `etch record --source pt` in every way there is, and leaves bundles, what etch said and
# what really ran (the module's own log) in the shared folder, one folder a case. pt.sh checks them on the host, which
# is faster. Arguments: the build folder, how many recordings and crashes in a row, then the cases to run (all).
set -u
etch=$1/etch programs=$1/tests/programs cycles=$2 crashes=$3
module=$(sed 's/.*rig\.module=\([^ ]*\).*/\1/' /proc/cmdline)
knobs=/sys/module/etch_rig/parameters
shift 3
wanted=" $* "

# begin NAME: the folder of a case; false where it is not wanted
begin() {
  [ "$wanted" = "  " ] || [[ $wanted == *" $1 "* ]] || return 1
  echo "  $1"
  mkdir -p "$RIG_SHARE/$1"
  cd "$RIG_SHARE/$1" || exit 1
  echo >/dev/etch_rig_log
  echo Y >$knobs/log
}

# end: keeps what ran, and what is still open
end() {
  echo N >$knobs/log
  cat /dev/etch_rig_log >truth
  cat $knobs/live >live
}

# record ARG...: without the parts that are not at stake here
record() {
  local status=0
  "$etch" record --source pt --no-sync --clock 0 -o run.etch "$@" >out 2>err </dev/null || status=$?
  echo $status >status
}

# case_of NAME ARG...: one plain recording
case_of() {
  begin "$1" || return 0
  shift
  record "$@"
  end
}

# until_ COMMAND: waits for it to succeed, as long as the last thing started in the background is there; a guest has all the
# time that its host gives it
until_() {
  while kill -0 $! 2>/dev/null; do
    eval "$1" && return 0
    sleep 0.05
  done
  echo "never came true: $1" >>err
  return 1
}

reload() {
  busybox rmmod etch_rig && busybox insmod "$module" "$@" || echo "the module does not load again" >&2
}

dots() {
  stat -c %s "$1"
}

# unprivileged LIMIT COMMAND...: as nobody, with so many KiB of memory to lock
unprivileged() {
  local limit=$1
  shift
  (ulimit -l "$limit" && exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$@")
}

# Time within the trace, as every CPU with PT since Skylake has it: without it nobody can tell which of two threads ran.
reload mtc=1

case_of full --full "$programs/loops-static"
case_of threads --full "$programs/threads-static"
case_of fork_exec --full "$programs/forks"
case_of signals --full "$programs/signals-static"
case_of snapshot "$programs/threads-static"
case_of wrapped --snapshot 16K "$programs/threads-static"
case_of segv "$programs/segv-static"
case_of segv_wrapped --snapshot 8K "$programs/crash"
case_of settings --full --pt noretcomp,psb_period=0,mtc_period=6 "$programs/switches-static"
case_of function_filter --full --filter step "$programs/switches-static"
case_of joined_filters --full --filter a --filter b --filter c --filter step "$programs/switches-static"
case_of filter_outside --full --filter 0x1-0x10 "$programs/switches-static"
case_of no_such_setting --pt cyc "$programs/switches-static"

case_of watched --full --watch shared "$programs/watched"

if begin overflow; then # the CPU's own buffer
  echo 3000 >$knobs/ovf_every # fewer than between two switches of tasks, also on a busy host: each begins to count anew
  record --full "$programs/switches-static"
  echo 0 >$knobs/ovf_every
  end
fi

if begin lost; then # etch sleeps while both rings fill
  "$etch" record --source pt --no-sync --clock 0 --full=16K -o run.etch "$programs/pingpong-static" >out 2>err &
  until_ '[ "$(dots out)" -ge 1 ]'
  kill -STOP $!
  had=$(dots out)
  until_ '[ "$(dots out)" -ge $((had + 20)) ]'
  kill -CONT $!
  had=$(dots out)
  until_ '[ "$(dots out)" -ge $((had + 3)) ]'
  kill "$(pidof pingpong-static)"
  wait $!
  echo $? >status
  end
fi

if begin attach; then
  "$programs/endless" >out &
  target=$!
  until_ '[ -s out ]'
  "$etch" record --source pt --clock 0 --full -o run.etch --pid $target >record.out 2>err &
  until_ '[ "$(head -c 160000 /dev/etch_rig_log | wc -c)" = 160000 ]'
  kill -INT $!
  wait $!
  echo $? >status
  kill -0 $target && echo alive >alive
  kill $target
  end
fi

if begin pids; then # two from outside, one of them with threads
  "$programs/endless" >out &
  one=$!
  "$programs/pingpong-static" >dots &
  two=$!
  until_ '[ -s out ] && [ -s dots ]'
  "$etch" record --source pt --clock 0 --full -o run.etch --pid $one,$two >record.out 2>err &
  until_ '[ "$(head -c 320000 /dev/etch_rig_log | wc -c)" = 320000 ]'
  kill -INT $!
  wait $!
  echo $? >status
  echo $one $two >pids
  kill $one $two
  end
fi

if begin cgroup; then
  echo +pids >/sys/fs/cgroup/cgroup.subtree_control # so that the kernel makes the groups' parts at all
  mkdir /sys/fs/cgroup/etch
  (echo $BASHPID >/sys/fs/cgroup/etch/cgroup.procs && exec "$programs/pingpong-static") >out &
  target=$!
  until_ '[ -s out ]'
  "$etch" record --source pt --clock 0 --full -o run.etch --cgroup etch >record.out 2>err &
  until_ '[ "$(head -c 160000 /dev/etch_rig_log | wc -c)" = 160000 ]'
  kill -INT $!
  wait $!
  echo $? >status
  echo $target >pids
  kill $target
  end
fi

if begin busy; then # perf traces the process already
  "$programs/pingpong-static" >out &
  target=$!
  perf record -q -e intel_pt//u -p $target -o /tmp/busy.data >perf.out 2>&1 &
  until_ '! grep -q "events 0" $knobs/live'
  status=0
  "$etch" record --source pt --clock 0 -o run.etch --pid $target >record.out 2>err || status=$?
  echo $status >status
  kill -INT $!
  wait $!
  kill $target
  end
fi

if begin perf; then # the same program by perf
  echo 0 >/proc/sys/kernel/randomize_va_space
  # The cache goes along for its copy of this kernel's vdso, which new C libraries call for random numbers.
  perf --buildid-dir "$PWD/.debug" record -q -e intel_pt//u -o perf.data env -i "$programs/switches-static" >perf.out 2>&1
  record --full env -i "$programs/switches-static"
  echo 2 >/proc/sys/kernel/randomize_va_space
  end
fi

if begin rights; then
  mkdir -m 777 /tmp/rights
  cp "$etch" "$programs/segv-static" /tmp/rights
  cd /tmp/rights || exit 1
  echo 3 >/proc/sys/kernel/perf_event_paranoid
  unprivileged 64 ./etch record --source pt -o run.etch ./segv-static >"$RIG_SHARE/rights/refused" 2>&1
  unprivileged 64 ./etch doctor >"$RIG_SHARE/rights/doctor_refused" 2>&1
  echo 2 >/proc/sys/kernel/perf_event_paranoid
  unprivileged 64 ./etch record --source pt --no-sync --clock 0 -o run.etch ./segv-static >"$RIG_SHARE/rights/smaller" 2>&1
  unprivileged 64 ./etch record --source pt -o large.etch --snapshot 64M ./segv-static >"$RIG_SHARE/rights/large" 2>&1
  unprivileged 64 ./etch doctor >"$RIG_SHARE/rights/doctor" 2>&1
  cp run.etch "$RIG_SHARE/rights"
  cd "$RIG_SHARE/rights" || exit 1
  end
fi

# Again and again, by one user whose locked memory would run out if any of it stayed behind.
if begin cycles; then
  mkdir -m 777 /tmp/cycles
  cp "$etch" "$programs/segv-static" "$(command -v busybox)" /tmp/cycles
  cd /tmp/cycles || exit 1
  echo N >$knobs/log
  echo 2 >/proc/sys/kernel/perf_event_paranoid
  # Without MTC, of which each step makes one: a C library of today takes too many steps before main for so small a ring.
  for i in $(seq "$((cycles + crashes))"); do
    program=(./busybox true)
    [ "$i" -le "$cycles" ] || program=(./segv-static)
    unprivileged 64 ./etch record --source pt --no-sync --clock 0 --snapshot 128K --pt mtc=0 -o run.etch "${program[@]}" >/dev/null 2>said
    echo "$? $(head -n 1 said)"
  done >"$RIG_SHARE/cycles/results"
  echo -1 >/proc/sys/kernel/perf_event_paranoid
  cd "$RIG_SHARE/cycles" || exit 1
  end
fi

# wait_for COMMAND: as long as the guest lives
wait_for() {
  until eval "$1"; do sleep 0.05; done
}

# The rings of running processes, kept for their cores. Two crash, one after the other, and the recorder goes on.
if begin for_cores; then
  ulimit -c unlimited
  cat /proc/sys/kernel/core_pattern >pattern
  "$etch" core --install --to /tmp/cores >install 2>&1
  "$RIG_SHARE/later" >one & one=$!
  "$RIG_SHARE/later" >two & two=$!
  "$programs/endless" >endless & third=$!
  wait_for '[ -s one ] && [ -s two ] && [ -s endless ]'
  "$etch" record --source pt --clock 0 --for-cores=/tmp/cores --snapshot 2M --pid $one,$two,$third >record.out 2>err & recorder=$!
  wait_for 'ls /tmp/cores/*.sock >/dev/null 2>&1 || ! kill -0 $recorder 2>/dev/null'
  kill -USR1 $one
  wait $one
  wait_for '[ -e /tmp/cores/later.'$one'.*.pt.etch ] || ! kill -0 $recorder 2>/dev/null'
  kill -USR1 $two
  wait $two
  wait_for '[ "$(ls /tmp/cores/later.*.pt.etch 2>/dev/null | wc -l)" = 2 ] || ! kill -0 $recorder 2>/dev/null'
  kill -INT $recorder
  wait $recorder
  echo $? >status
  kill $third
  "$etch" core --list --to /tmp/cores >list 2>&1
  "$etch" core --uninstall --to /tmp/cores >uninstall 2>&1
  rm -f /tmp/cores/*.sock
  cp -r /tmp/cores "$RIG_SHARE/for_cores"
  echo "$one $two" >pids
  end
fi

if begin diagnose; then # from runs to a sketch, by control flow
  echo N >$knobs/log
  status=0
  "$etch" diagnose --source pt --runs 60 --timeout 300 --store store --json sketch.json -- "$RIG_SHARE/null-check" >out 2>err || status=$?
  echo $status >status
  end
fi

if [[ $wanted == *" diagnose_order "* ]] && begin diagnose_order; then # by watches; takes minutes
  echo N >$knobs/log
  status=0
  "$etch" diagnose --source pt --runs 60 --timeout 300 --store store --json sketch.json -- "$RIG_SHARE/order-init" >out 2>err || status=$?
  echo $status >status
  end
fi

reload mtc=1 filters=0
case_of no_filters --full --filter step "$programs/switches-static"
exit 0
