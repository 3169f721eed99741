#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# soft_suites.sh BUILD: do pbzip2 and memcached pass their own tests, built with etch cc --record and recording, where they pass them
# built with clang? pbzip2's are those that Debian's package names, and files of several sizes there and back. Some of memcached's
# depend on time, so one that fails is tried thrice. Fails where the recorder makes one fail. ETCH_BENCH_SOURCES keeps sources.
# ETCH_BENCH_PROGRAMS: pbzip2 memcached.
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
. "$here/debian.bash"
. "$here/soft_programs.bash"
trap 'rm -rf "$work"; forget_sources' EXIT
export ETCH_BENCH_SCALE=1
worse=0

# passes COMMAND...: in one of three attempts; recording, where the program can
passes() {
  local i status=1
  for i in 1 2 3; do
    mkdir -p "$work/rings"
    ETCH_RING=$work/rings timeout -k 5 120 "$@" >>"$work/suite.log" 2>&1 && status=0
    rm -rf "$work/rings"
    [ $status = 0 ] && return 0
  done
  return $status
}

there_and_back() { # PBZIP2 BYTES
  head -c "$2" /dev/urandom >"$work/random"
  "$1" -p3 -b1 -c "$work/random" | tee "$work/random.bz2" | "$1" -d -c -p2 | cmp - "$work/random" && bzip2 -dc "$work/random.bz2" | cmp - "$work/random"
}

pbzip2_tests() { # HOW
  local tree=$work/pbzip2.$1.tree size
  cd "$tree"
  export PATH=$tree:$PATH
  grep '^Test-Command: ' debian/tests/control | sed 's/^Test-Command: //' >"$work/commands"
  while read -r command; do
    passes bash -c "$command" && echo "$command"
  done <"$work/commands"
  export -f there_and_back
  export work
  for size in 0 1 99999 1000000 3000001; do
    passes bash -c "there_and_back ./pbzip2 $size" && echo "there and back, $size bytes"
  done
  return 0
}

memcached_tests() { # HOW
  local test
  cd "$work/memcached.$1.tree"
  for test in ./sizes ./testapp; do passes "$test" && echo "$test"; done
  for test in t/*.t; do passes prove "$test" && echo "$test"; done
  return 0
}

for program in ${ETCH_BENCH_PROGRAMS:-pbzip2 memcached}; do
  prepare "$program"
  for how in plain record; do
    make_package "$program" "$build/etch" $how "$work/$program.$how"
    ("${program}_tests" $how) >"$work/$program.$how.passed"
  done
  lost=$(comm -23 <(sort "$work/$program.plain.passed") <(sort "$work/$program.record.passed"))
  printf '%-10s %d pass plain, %d recorded%s\n' "$program" "$(wc -l <"$work/$program.plain.passed")" \
    "$(wc -l <"$work/$program.record.passed")" "${lost:+; FAILS ONLY WITH THE RECORDER: $lost}"
  [ -z "$lost" ] || worse=1
done
exit $worse
