#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a library or the kernel does to watched memory is told as done by the line of the program that called it: by
# unwind tables, and where those do not lead to the program by nobody.
. "$(dirname "$0")/lib.sh"
has_watchpoints || skip "no hardware watchpoints here"
source=$ETCH_SOURCE/tests/programs/native/outside.c
# The frame pointer is kept: following it would find the caller that the tables do not tell.
for lib in told untold; do
  flags=$([ $lib = untold ] && echo "-fno-asynchronous-unwind-tables -fno-unwind-tables" || true)
  "$ETCH_CC" -O0 -fno-omit-frame-pointer $flags -fPIC -shared "${source%.c}_$lib.c" -o "$work/lib$lib.so"
done
"$ETCH_CC" -O0 -g -w -pthread "$source" -L"$work" -ltold -luntold -Wl,-rpath,"$work" -o "$work/outside_none"
expect 0 "$ETCH" cc --record -O0 -g -w -pthread "$source" -L"$work" -ltold -luntold -Wl,-rpath,"$work" -o "$work/outside_soft"
line() { grep -n "/\* :$1 \*/" "$source" | cut -d: -f1; }

# check FUNCTION CALLER: there are accesses of the function, and they have that caller
check() {
  checks=$((checks + 1))
  [ "$(awk -v f="$1" '$3 ~ f {print $6}' "$work/accesses" | sort -u)" = "$2" ] ||
    { cat "$work/accesses" >&2; fail "accesses by $1 are not those of '$2'"; }
}
for how in none soft; do
  expect 0 "$ETCH" record --source $how --watch-budget none --watch-share 0 -o "$work/run.etch" \
    --watch "@the_site=rdi,,1,8:8" "$work/outside_$how"
  has "$work/out" "done"
  has "$work/err" "nothing lost"
  "$ETCH_BUILD/tests/accesses" --callers "$work/run.etch" >"$work/accesses" || fail "the accesses cannot be read"
  check '^fill[.+]' -
  check use_told "main:$(line told)"
  check use_untold -
  check use_deep -
  if grep -qE 'mem(cpy|move)' "$work/accesses"; then
    check 'mem(cpy|move)' "copy:$(line memcpy)"
    check strncpy "main:$(line strncpy)"
    check '(int|libc)_free|^free|tcache' "main:$(line free)"
    grep -q "by the kernel for the program" "$work/err" || check '^[?][+]0' "main:$(line read)"
  else # libc is stripped of its own functions' names, though not of those it exports: by whom they were called is known all the same
    callers=$(printf '%s\n' "copy:$(line memcpy)" "main:$(line strncpy)" "main:$(line read)" "main:$(line free)" | sort)
    ! grep -q "by the kernel for the program" "$work/err" || callers=$(grep -v "main:$(line read)" <<<"$callers")
    grep -vE '^[0-9]+ [0-9]+ (fill|use_)' "$work/accesses" >"$work/theirs"
    mv "$work/theirs" "$work/accesses"
    check . "$callers"
  fi
  [ "$(awk -v c="copy:$(line memcpy)" '$6 == c {print $2}' "$work/accesses" | sort -u | wc -l)" -eq 2 ] || fail "two threads copied"
done

# A library that is not the one that ran any more hides its own callers only.
"$ETCH_CC" -O1 -fno-omit-frame-pointer -fPIC -shared "${source%.c}_untold.c" -o "$work/new.so"
mv "$work/new.so" "$work/libuntold.so"
"$ETCH_BUILD/tests/accesses" --callers "$work/run.etch" >"$work/accesses" || fail "the accesses cannot be read"
check use_told "main:$(line told)"
done_checking
