#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Bundles of C++ programs that are damaged, cut, empty, foreign or edited: etch sketch, info and decode end by
# themselves, with a status and words; never by a signal.
. "$(dirname "$0")/lib.sh"
cd "$work"
tools=$ETCH_BUILD/tests
bundles=10000
[ -e "$tools/fuzz_runs" ] && bundles=300 # under the sanitizers: the fuzzer has more of them
bash "$ETCH_SOURCE/tests/damage/make.sh" "$ETCH" "$work" || fail "the programs cannot be built"
sketch() { "$ETCH" sketch "$@"; }

# words STATUS TEXT COMMAND...: it ends with the status and says TEXT on standard error
words() {
  local want=$1 text=$2
  shift 2
  expect "$want" "$@"
  has err "$text"
}

# lives COMMAND...: any status of its own; where that is not 0 it says why
lives() {
  local status=0
  timeout 60 "$@" >out 2>err </dev/null || status=$?
  checks=$((checks + 1))
  [ $status -le 2 ] || { cat err >&2; fail "'$*' exited with $status"; }
  ! grep -q Sanitizer err || { cat err >&2; fail "'$*' has undefined behaviour"; }
  [ $status -eq 0 ] || cat out err | grep -q . || fail "'$*' exited with $status and no word"
}

# ---- Each failure is drawn
for name in crash throw race hang check; do
  expect 0 sketch $name/prog $name/none.fail.etch $name/none.pass.etch --html page.html --json data.json --sarif data.sarif
  expect 0 sketch $name/prog $name/soft.fail.etch $name/soft.pass.etch
done

# ---- Nothing to draw, said in words
words 1 'none of the 1 runs failed' sketch crash/prog crash/none.pass.etch
words 1 "no run failed at 'nowhere'" sketch crash/prog crash/none.fail.etch --bug nowhere
words 1 'none of the 1 recordings is of this build' sketch throw/prog crash/none.fail.etch
words 1 'cannot open' sketch crash/prog missing.etch
words 1 'missing' sketch missing crash/none.fail.etch
: >empty.etch
words 1 'empty.etch' sketch crash/prog empty.etch
echo 'this is no bundle at all' >text.etch
words 1 'text.etch' sketch crash/prog text.etch
"$ETCH_CC" -g -o plain crash/../check/check.c
words 1 'plain' sketch plain crash/none.fail.etch
for size in 7 16 40 200; do
  head -c $size crash/none.fail.etch >cut.etch
  words 1 'cut.etch does not say which program ran' sketch crash/prog cut.etch
done
head -c 3000 crash/none.fail.etch >cut.etch # before the failure: the run did not pass for that
words 1 '1 of 1 recordings end before the run did' sketch crash/prog cut.etch
expect 0 sketch crash/prog cut.etch crash/none.fail.etch
has out 'one failure, no comparison yet'
has out '1 recording ends before the run did'

# ---- What was found by chance once
damaged() {
  local from=$1
  shift
  "$tools/edit_bundle" "$from" edited.etch "$@" || fail "edit_bundle $*"
}
damaged crash/none.fail.etch failure.threads- # a thread of which nothing is known
words 1 'failed at a known place' sketch crash/prog edited.etch
damaged crash/none.fail.etch failure.threads.frames- failure.threads.stack-
lives "$ETCH" sketch crash/prog edited.etch
damaged race/soft.fail.etch stream.tid=0 # control flow of a thread that nobody knows
lives "$ETCH" sketch race/prog edited.etch
damaged race/soft.fail.etch thread- accesses.accesses.tid=1
lives "$ETCH" sketch race/prog edited.etch race/soft.pass.etch
damaged check/none.pass.etch accesses.accesses.size=0 watch.size=0
lives "$ETCH" sketch check/prog edited.etch check/none.fail.etch
damaged check/none.fail.etch program.exe- program.build_id- image.build_id- image.path-
lives "$ETCH" sketch check/prog edited.etch
damaged crash/none.fail.etch program-
words 1 'does not say which program ran' sketch crash/prog edited.etch
damaged crash/none.fail.etch image-
words 1 '' sketch crash/prog edited.etch
damaged crash/soft.fail.etch end- # cut
lives "$ETCH" sketch crash/prog edited.etch

# ---- As a user runs it: each damaged in its bytes
i=0
for file in */*.fail.etch; do
  for seed in 1 2 3; do
    i=$((i + 1))
    "$tools/read_damaged" --write damaged.etch $i "$file" || fail "read_damaged --write"
    lives "$ETCH" info damaged.etch
    lives "$ETCH" info --verify damaged.etch
    lives "$ETCH" decode damaged.etch --as call
    [ $seed -gt 1 ] || lives "$ETCH" sketch "$(dirname "$file")/prog" damaged.etch --json data.json
  done
done

# ---- Many, in one process
inputs=()
for folder in crash throw race hang check; do
  for fail in $folder/*.fail.etch; do
    with=$(basename "$fail" .fail.etch) pass=
    [ -e "$folder/$with.pass.etch" ] && pass=$folder/$with.pass.etch
    "$tools/pack_runs" --lean "$work/$folder/prog" "$folder/$with.input" "$fail" "$fail" ${pass:+"$pass"} ||
      fail "pack_runs $fail"
    inputs+=("$folder/$with.input")
  done
done
expect 0 "$tools/read_damaged" "$bundles" 1 "${inputs[@]}"
cat "$work/out"
done_checking
