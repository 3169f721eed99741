#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# soft_suites.sh BUILD: do five programs pass their own tests, built with etch cc --record and recording, where they pass them built
# with clang? pbzip2's are those that Debian's package names, and files of several sizes there and back. Some of memcached's depend
# on time, so one that fails is tried thrice. Fails where the recorder makes one fail. ETCH_BENCH_SOURCES keeps sources.
# ETCH_BENCH_PROGRAMS: pbzip2 memcached bzip2 mawk jq. ETCH_RING_BUDGET=off: with everything recorded.
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

bzip2_tests() { # HOW: what its makefile's "test" does
  local i
  cd "$work/bzip2"
  for i in 1 2 3; do
    passes bash -c "'$work/bzip2.$1' -$i <sample$i.ref | cmp - sample$i.bz2" && echo "compress sample$i"
    passes bash -c "'$work/bzip2.$1' -d <sample$i.bz2 | cmp - sample$i.ref" && echo "expand sample$i"
  done
  return 0
}

mawk_tests() { # HOW: each part of its script that says OK, and that it ends
  cd "$work/mawk/test"
  mkdir -p "$work/mawk.$1.bin" && cp "$work/mawk.$1" "$work/mawk.$1.bin/mawk"
  : >"$work/suite.log"
  PATH=$work/mawk.$1.bin:$PATH passes ./mawktest && echo "mawktest"
  grep -i 'ok$\|passed' "$work/suite.log" | sort | uniq -c
  return 0
}

jq_tests() { # HOW: its count of passed tests, without those of the regular expressions that it was built without
  local list
  cd "$work/jq/tests"
  for list in jq.test base64.test optional.test; do
    : >"$work/suite.log"
    passes "$work/jq.$1" -L modules --run-tests "$list" || true
    grep 'tests passed' "$work/suite.log" | tail -n 1 | sed "s/^/$list: /"
  done
}

build_one() { # PROGRAM HOW
  local compiler=(clang-19)
  [ "$2" = record ] && compiler=("$build/etch" cc --record)
  case $1 in
  pbzip2 | memcached) make_package "$1" "$build/etch" "$2" "$work/$1.$2" ;;
  *) make_program "$1" "${compiler[@]}" -O2 -g -w -o "$work/$1.$2" ;;
  esac
}

for program in ${ETCH_BENCH_PROGRAMS:-pbzip2 memcached bzip2 mawk jq}; do
  prepare "$program"
  for how in plain record; do
    build_one "$program" $how
    ("${program}_tests" $how) >"$work/$program.$how.passed"
  done
  lost=$(comm -23 <(sort "$work/$program.plain.passed") <(sort "$work/$program.record.passed"))
  printf '%-10s %d pass plain, %d recorded%s\n' "$program" "$(wc -l <"$work/$program.plain.passed")" \
    "$(wc -l <"$work/$program.record.passed")" "${lost:+; FAILS ONLY WITH THE RECORDER: $lost}"
  [ -z "$lost" ] || worse=1
done
exit $worse
