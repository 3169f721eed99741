#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each program of tests/programs/slices shows one rule of the slicer. Its own comments say what is expected: @fail is where the
# slice begins, @in marks each other line of the slice, and all lines without a mark must stay out, at -O0 and at -O2. Words
# behind a mark are accesses that the line must name.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0 programs=0
for source in "$ETCH_SOURCE"/tests/programs/slices/*.c*; do
  name=$(basename "$source")
  case $name in *.cc) compiler=c++ ;; *) compiler=cc ;; esac
  for level in -O0 -O2; do
    programs=$((programs + 1))
    "$ETCH" "$compiler" $level -w "$source" -o "$dir/program" -pthread
    line=$(grep -n '//@fail' "$source" | cut -d: -f1)
    "$ETCH" slice "$dir/program" --at "$name:$line" >"$dir/out"
    awk -v name="$name" '/^  [ >]/ { n = ($1 == ">" || $1 ~ /^>/) ? ($1 == ">" ? $4 : $3) : $3; print n }' "$dir/out" | sort -nu >"$dir/got"
    grep -n '//@' "$source" | cut -d: -f1 | sort -n >"$dir/want"
    if ! diff "$dir/want" "$dir/got" >"$dir/diff"; then
      echo "$name $level: lines that are missing (<) or too many (>):"
      cat "$dir/diff" "$dir/out"
      failed=1
    fi
    while IFS= read -r mark; do
      number=${mark%%:*} words=${mark##*//@}
      words=${words#in} words=${words#fail} words=${words# }
      [ -n "$words" ] || continue
      IFS=',' read -ra each <<<"$words"
      for word in "${each[@]}"; do
        word=${word# }
        awk -v n="$number" '$0 ~ /^  [ >]/ && $0 ~ ("  +" n "  ")' "$dir/out" | sed 's/.*   # //' | tr ',' '\n' | sed 's/^ //' | grep -qxF -- "$word" || {
          echo "$name $level: line $number does not say '$word'"
          grep " $number  " "$dir/out"
          failed=1
        }
      done
    done < <(grep -n '//@' "$source")
  done
done
echo "$programs slices"
[ "$programs" -ge 34 ]
exit $failed
