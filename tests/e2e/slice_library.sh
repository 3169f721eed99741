#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Slices go through the program's own shared libraries: a failure within one, a value that one returned, a callback that it calls, one
# that the program loads by itself. Where the loader finds them is as the loader has it: RUNPATH, RPATH, LD_LIBRARY_PATH.
set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0
cp "$ETCH_SOURCE"/tests/programs/library/* . || exit 1
mkdir lib

# in_slice FILE LABEL: the slice in slice.out has that line
in_slice() {
  local line
  line=$(grep -n "//@$2\$" "$1" | cut -d: -f1)
  awk -v file="/$1)" '/^[^ ]/ { here = index($0, file) > 0 } here && /^  [ >]/' slice.out | grep -qE "^  [ >] .*[-rwbc]{4} +$line  " ||
    { echo "$what: $1:$line ($2) is not in the slice:"; cat slice.out; failed=1; }
}

sketch_at() { # FILE LABEL
  local line
  line=$(grep -n "//@$2\$" "$1" | cut -d: -f1)
  "$ETCH" sketch ./program run.etch >sketch.out 2>err || { echo "$what: no sketch: $(cat err)"; failed=1; return; }
  head -1 sketch.out | grep -q " $1:$line " || { echo "$what: the sketch does not fail at $1:$line:"; head -3 sketch.out; failed=1; }
}

for level in -O0 -O2; do
  for record in "" --record; do
    "$ETCH" c++ $record $level -fPIC -shared shapes.cc -o lib/libshapes.so || exit 1
    "$ETCH" cc $record $level -fPIC -shared plugin.c -o libplugin.so || exit 1
    "$ETCH" c++ $record $level main.cc -o program -Llib -lshapes -Wl,-rpath,'$ORIGIN/lib' || exit 1
    case $record in "") source=none ;; *) source=soft ;; esac
    what="$level $source at"
    "$ETCH" slice ./program --at main.cc:"$(grep -n '//@value$' main.cc | cut -d: -f1)" >slice.out || failed=1
    in_slice shapes.cc total
    in_slice shapes.cc narrowed
    in_slice main.cc narrow
    in_slice main.cc limit
    "$ETCH" slice ./program --at shapes.cc:"$(grep -n '//@inside$' shapes.cc | cut -d: -f1)" >slice.out || failed=1
    in_slice shapes.cc null
    in_slice main.cc draw
    in_slice main.cc make
    for how in inside value loaded; do
      what="$level $source $how"
      "$ETCH" record --source $source -o run.etch -- ./program $how >/dev/null 2>&1
      "$ETCH" slice ./program --failure run.etch >slice.out 2>err || { echo "$what: $(cat err)"; failed=1; continue; }
      case $how in
      inside) in_slice shapes.cc inside; in_slice shapes.cc null; sketch_at shapes.cc inside ;;
      value) in_slice main.cc value; in_slice shapes.cc total; sketch_at main.cc value ;;
      loaded) in_slice plugin.c loaded; in_slice plugin.c n; sketch_at plugin.c loaded ;;
      esac
    done
  done
done

# What a library's statements use is watched: its globals from the start, other things where its instructions take them.
what=watch
"$ETCH" slice ./program --at shapes.cc:"$(grep -n '//@inside$' shapes.cc | cut -d: -f1)" --plan plan --sigma 8 >slice.out || failed=1
grep -q 'shapes_made, 4 bytes, at 0x[0-9a-f]* of libshapes.so$' slice.out || { echo "the plan does not watch shapes_made:"; cat slice.out; failed=1; }
if "$ETCH" doctor --json | python3 -c 'import json,sys; sys.exit(0 if json.load(sys.stdin)["watchpoints"]["delivered"] else 1)'; then
  "$ETCH" record --source none --plan plan --set 0 -o run.etch -- ./program inside >/dev/null 2>&1
  "$ETCH" info run.etch >info.out
  grep -q 'watch .*shapes_made at 0x[0-9a-f]*, 4 bytes, rw$' info.out || { echo "shapes_made was not watched:"; cat info.out; failed=1; }
else
  echo "no hardware watchpoints here: watching is not tried"
fi

# The loader's other ways to find it.
what="LD_LIBRARY_PATH"
"$ETCH" c++ main.cc -o program -Llib -lshapes || exit 1
LD_LIBRARY_PATH=$PWD/lib "$ETCH" slice ./program --at main.cc:"$(grep -n '//@value$' main.cc | cut -d: -f1)" >slice.out || failed=1
in_slice shapes.cc total
what="RPATH"
"$ETCH" c++ main.cc -o program -Llib -lshapes -Wl,--disable-new-dtags,-rpath,"$PWD/lib" || exit 1
"$ETCH" slice ./program --at main.cc:"$(grep -n '//@value$' main.cc | cut -d: -f1)" >slice.out || failed=1
in_slice shapes.cc total

# A library whose bitcode cannot be read is left out, and this is said.
what="damaged"
objcopy --dump-section .llvmbc=all.bc lib/libshapes.so && head -c 64 all.bc >some.bc
objcopy --remove-section .llvmbc lib/libshapes.so lib/bare.so && objcopy --add-section .llvmbc=some.bc lib/bare.so lib/libshapes.so
"$ETCH" slice ./program --at main.cc:"$(grep -n '//@value$' main.cc | cut -d: -f1)" >slice.out 2>err || failed=1
grep -q 'does not go through .*libshapes.so: .*damaged' err || { echo "a damaged library is not spoken of: $(cat err)"; failed=1; }
exit $failed
