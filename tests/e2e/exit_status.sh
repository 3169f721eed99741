#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A run that fails by its exit status failed where the value was made: the return within its scopes, the exit(), the assignment of what is
# returned later; not at the brace behind the destructors. The slice begins there too, with and without recorded control flow.
set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0 checked=0

# expect SOURCE KIND LABEL SURE; "known": this statement and no other. Without control flow a status that two can give is of both.
expect() {
  local source=$1 kind=$2 label=$3 sure=$4 line place
  line=$(grep -n "//@$label\$" "$source" | cut -d: -f1)
  checked=$((checked + 1))
  "$ETCH" record --source "$kind" -o run.etch -- ./program "$label" >/dev/null 2>&1
  "$ETCH" slice ./program --failure run.etch >slice.out 2>err || { echo "$sure $kind $label: no slice: $(cat err)"; failed=1; return; }
  grep -qE "^  >  0 .* $line  " slice.out || { echo "$sure $kind $label: line $line is not where the slice begins:"; cat slice.out; failed=1; }
  [ "$(grep -cE '^  [ >]' slice.out)" -ge 3 ] || { echo "$sure $kind $label: a slice of nothing:"; cat slice.out; failed=1; }
  [ "$sure" = known ] || return 0
  [ "$(grep -cE '^  >' slice.out)" -eq 1 ] || { echo "$kind $label: more than one beginning:"; cat slice.out; failed=1; }
  "$ETCH" sketch ./program run.etch >sketch.out 2>err || { echo "$kind $label: no sketch: $(cat err)"; failed=1; return; }
  place=$(sed -n '1s/.*exit status [0-9]* in [^ ]*  *\([^ ]*\).*/\1/p' sketch.out)
  [ "$place" = "$(basename "$source"):$line" ] || { echo "$kind $label: the sketch fails at $place, not at line $line:"; cat sketch.out; failed=1; }
}

for name in ends.c ends.cc; do
  source=$ETCH_SOURCE/tests/programs/exits/$name
  case $name in *.cc) compiler=c++ ;; *) compiler=cc ;; esac
  labels=$(sed -n 's/.*\/\/@//p' "$source")
  for level in -O0 -O2; do
    "$ETCH" $compiler --record -w $level "$source" -o program -pthread || exit 1
    for label in $labels; do
      expect "$source" none "$label" "$([ $compiler = cc ] && echo maybe || echo known)"
      expect "$source" soft "$label" "$([ $compiler$level = cc-O2 ] && echo maybe || echo known)"
    done
    # All of one status: what ran says which, as far as the optimiser has left the statements apart.
    "$ETCH" $compiler --record -w -DSAME $level "$source" -o program -pthread || exit 1
    for label in $labels; do
      expect "$source" soft "$label" "$([ $level = -O0 ] && echo known || echo maybe)"
    done
  done
done
echo "$checked runs"
exit $failed
