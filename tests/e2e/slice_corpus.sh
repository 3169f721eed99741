#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The slice of each bug of the corpus, from where it fails, has every statement of its ideal sketch, at -O0 and -O2, but for those
# that its ideal file says no dependence leads to, which it really has not; and that file is well-formed: each label is on exactly
# one line of the program.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0 bugs=0 statements=0
step=1
[ -e "$ETCH_BUILD/tests/fuzz_runs" ] && step=3 # under the sanitizers each third is enough
field() { sed -n "s/^$1: //p" "$2"; }
line_of() { # LABEL FILE
  local lines
  lines=$(grep -nE "//@$1( |$)" "$2" | cut -d: -f1)
  case $lines in '' | *$'\n'*) return 1 ;; *) echo "$lines" ;; esac
}
for ideal in "$ETCH_SOURCE"/tests/corpus/*/ideal; do
  name=$(basename "$(dirname "$ideal")") source=$(dirname "$ideal")/bug.c compiler=cc
  [ -f "$source" ] || source=${source}pp compiler='c++ -std=c++17'
  bugs=$((bugs + 1))
  [ $((bugs % step)) -eq 0 ] || continue
  for key in kind fails failing sketch predictor rate; do
    [ -n "$(field $key "$ideal")" ] || { echo "$name: its ideal has no '$key'"; failed=1; }
  done
  sketch=$(field sketch "$ideal" | tr + ' ') # a+b: either may come first
  for label in $(field failing "$ideal") $sketch; do
    line_of "$label" "$source" >/dev/null || { echo "$name: label $label is not on exactly one line"; failed=1; }
  done
  for level in -O0 -O2; do
    "$ETCH" $compiler $level -w "$source" -o "$dir/program" -pthread
    : >"$dir/got"
    for label in $(field failing "$ideal"); do
      "$ETCH" slice "$dir/program" --at "${source##*/}:$(line_of "$label" "$source")" >"$dir/out"
      awk '/^  [ >]/ { print ($1 == ">") ? $4 : $3 }' "$dir/out" >>"$dir/got"
    done
    for label in $sketch; do
      statements=$((statements + 1))
      case " $(field beyond "$ideal") " in
      *" $label "*)
        ! grep -qx "$(line_of "$label" "$source")" "$dir/got" || { echo "$name $level: the slice has '$label'"; failed=1; }
        continue
        ;;
      esac
      grep -qx "$(line_of "$label" "$source")" "$dir/got" || {
        echo "$name $level: the slice lacks '$label': $(grep "//@$label" "$source")"
        failed=1
      }
    done
  done
done
echo "$bugs bugs, $statements statements of ideal sketches"
[ "$bugs" -ge 24 ]
exit $failed
