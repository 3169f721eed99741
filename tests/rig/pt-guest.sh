# SPDX-License-Identifier: MIT
# Runs in the guest: records with `etch record --source pt` in every way there is, and leaves bundles, what etch said and
# what really ran (the module's own log) in the shared folder, one folder a case. pt.sh checks them on the host, which
# is faster. Arguments: the build folder, then the cases to run (all).
set -u
etch=$1/etch programs=$1/tests/programs module=$(sed 's/.*rig\.module=\([^ ]*\).*/\1/' /proc/cmdline)
knobs=/sys/module/etch_rig/parameters
shift
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

# end: keeps what ran
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

reload() {
  busybox rmmod etch_rig && busybox insmod "$module" "$@" || echo "the module does not load again" >&2
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
case_of segv_wrapped --snapshot 8K "$programs/segv"
case_of function_filter --full --filter sum "$programs/loops-static"
exit 0
