#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Debug information as people have it: in a separate file, packed by dwz, compressed, split. A slice and a watched field say the same
# as with the whole file; a debug file of another build says nothing. symbols.sh has the same for addresses.
. "$(dirname "$0")/lib.sh"
cd "$work"
export HOME=$work/home
cat >total.c <<'END'
#include <pthread.h>
struct total {
    int before, count;
};
struct total total;
static void *add(void *unused)
{
    total.count++;
    return unused;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, add, NULL);
    add(NULL);
    pthread_join(t, NULL);
    return total.count > 2;
}
END
cat >total.cpp <<'END'
#include <thread>
struct totals {
    int before, count;
};
totals total;
static void add()
{
    total.count++;
}
int main()
{
    std::thread t(add);
    add();
    t.join();
    return total.count > 2;
}
END

# slice FILE: the slice of the last line; the name of the program is taken out
slice() { "$ETCH" slice "./$1" --at "$place" 2>&1 | sed '1s/^slice of [^ ]*//'; }
# like_whole FILE WHAT
like_whole() {
  slice "$1" >found
  same whole found
  # A watch needs the symbol of its variable in the program itself.
  ! $watches || ! readelf -SW "$1" | grep -q ' \.symtab ' || watch_like "$1" "$2"
  echo "the same: $2"
}
watch_like() {
  local got=0
  "$ETCH" record --source none --watch total.count -o "$work/run.etch" -- "./$1" >out 2>&1 || got=$?
  [ "$got" -eq 0 ] || { cat out >&2; fail "a field cannot be watched: $2"; }
  rm -f run.etch
}
watches=false
! has_watchpoints || watches=true

for language in cc c++; do
  if [ $language = cc ]; then
    place=total.c:17 source=total.c flags='-O2'
  else
    place=total.cpp:15 source=total.cpp flags='-O0 -std=c++17'
  fi
  rm -rf .debug program* other* home
  # dwz and the split form want DWARF 4 or less of clang's sections
  # shellcheck disable=SC2086
  "$ETCH" $language $flags -g -gdwarf-4 -pthread "$source" -o program
  slice program >whole
  has whole "total"
  like_whole program "$language, the whole file"

  cp program programz
  objcopy --compress-debug-sections=zlib programz
  like_whole programz "$language, compressed by zlib"

  cp program program-stripped
  objcopy --only-keep-debug program program.debug
  strip --strip-all program-stripped
  said=$("$ETCH" slice ./program-stripped --at "$place" 2>&1 || true)
  case $said in *"has no debug information"*) checks=$((checks + 1)) ;; *) fail "a stripped file has debug information" ;; esac
  cp program-stripped program-linked
  objcopy --add-gnu-debuglink=program.debug program-linked
  like_whole program-linked "$language, .gnu_debuglink beside the program"
  cp program program-part
  strip --strip-debug program-part
  objcopy --add-gnu-debuglink=program.debug program-part
  like_whole program-part "$language, .gnu_debuglink, with symbols"
  mkdir .debug
  mv program.debug .debug
  like_whole program-linked "$language, .gnu_debuglink below .debug"

  id=$(readelf -n program-stripped | awk '/Build ID/ { print $3 }')
  [ -n "$id" ] || fail "the program has no build-id"
  mkdir -p "home/.cache/debuginfod_client/$id"
  cp .debug/program.debug "home/.cache/debuginfod_client/$id/debuginfo"
  like_whole program-stripped "$language, fetched by a client of debuginfod"

  # a debug file of another build
  # shellcheck disable=SC2086
  "$ETCH" $language $flags -g -DOTHER -pthread "$source" -o other -Wl,--build-id=0x0102030405060708
  objcopy --only-keep-debug other .debug/program.debug
  rm -r home
  expect 1 "$ETCH" slice ./program-linked --at "$place"
  has err "has no debug information"

  if command -v dwz >/dev/null; then
    cp program program-dwz
    cp program program-dwz2
    dwz -m "$work/common.debug" program-dwz program-dwz2
    readelf -SW program-dwz | grep -q gnu_debugaltlink || fail "dwz made no common file"
    like_whole program-dwz "$language, packed by dwz, with a common file"
  fi
  if objcopy --compress-debug-sections=zstd program programzstd 2>/dev/null; then
    if slice programzstd | grep -q 'which the libdw of this system cannot read (try: objcopy --decompress-debug-sections'; then
      echo "this libdw does not read zstd, and etch says so"
      objcopy --decompress-debug-sections programzstd
    fi
    like_whole programzstd "$language, compressed by zstd"
  fi
  # shellcheck disable=SC2086
  "$ETCH" $language $flags -g -gsplit-dwarf -pthread "$source" -o program-split
  like_whole program-split "$language, split DWARF"
done
done_checking
