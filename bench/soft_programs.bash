# SPDX-License-Identifier: MIT
# Sourced by what builds real programs with the software recorder: how each is built with a given compiler, and what it
# then does. Needs $here (bench/), $sources and fetch (debian.bash), $work, and $build/etch.

. "$here/soft_more.bash"

# stop MESSAGE: with what was last logged
stop() {
  tail -n 20 "$work/log" >&2
  echo "$(basename "$0"): $1" >&2
  exit 1
}

# prepare PROGRAM: its source, and what it is fed, in $work/PROGRAM
prepare() {
  is_more "$1" && { prepare_more "$1"; return; }
  mkdir -p "$work/$1"
  case $1 in
  bzip2) fetch bzip2 && cp -a "$sources"/bzip2-*/. "$work/bzip2" ;;
  lua)
    fetch lua5.4 && cp -a "$sources"/lua5.4-*/. "$work/lua"
    echo '#define DEB_HOST_MULTIARCH "x86_64-linux-gnu"' >"$work/lua/src/lua5.4-deb-multiarch.h" # as its rules do
    ;;
  sqlite)
    fetch sqlite3 && cp -a "$sources"/sqlite3-*/. "$work/sqlite"
    [ -s "$sources/amalgamation/sqlite3.c" ] || { # made once: it takes longer than what is measured
      (cd "$work/sqlite" && ./configure --disable-tcl && make sqlite3.c shell.c) >"$work/log" 2>&1 || stop "cannot make sqlite3.c"
      mkdir -p "$sources/amalgamation" && cp "$work"/sqlite/{sqlite3.c,sqlite3.h,shell.c} "$sources/amalgamation"
    }
    cp "$sources"/amalgamation/* "$work/sqlite"
    ;;
  threads) cp "$here/soft_threads.c" "$work/threads" ;;
  pbzip2 | memcached) fetch "$1" ;;
  esac
  feed "$1"
}

# scale N: N times what a quick look needs
scale() { echo $(($1 * ${ETCH_BENCH_SCALE:-4})); }

feed() {
  case $1 in
  bzip2)
    for ((i = 0; i < $(scale 3); i++)); do cat "$work"/bzip2/*.[ch]; done >"$work/bzip2.text"
    ;;
  lua) cat >"$work/lua.script" <<LUA ;;
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local words, seed = {}, 42
local function random(n) seed = (seed * 1103515245 + 12345) % 2147483648; return seed % n + 1 end
for round = 1, $(scale 8) do
  fib(20)
  for i = 1, 3000 do words[i] = string.char(96 + random(26), 96 + random(26), 96 + random(26)) .. random(1000) end
  table.sort(words)
  local counts = {}
  for word in table.concat(words, " "):gmatch("%a+") do counts[word] = (counts[word] or 0) + 1 end
  local text = {}
  for word, n in pairs(counts) do text[#text + 1] = ("%s=%d"):format(word:upper(), n) end
  assert(#table.concat(text, ";") > 0)
  local queens = 0
  local function place(row, columns, up, down)
    if row > 6 then queens = queens + 1 return end
    for c = 1, 6 do
      if not columns[c] and not up[row + c] and not down[row - c] then
        columns[c], up[row + c], down[row - c] = true, true, true
        place(row + 1, columns, up, down)
        columns[c], up[row + c], down[row - c] = nil, nil, nil
      end
    end
  end
  place(1, {}, {}, {})
  assert(queens == 4)
end
LUA
  sqlite) cat >"$work/sqlite.script" <<SQL ;;
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL, kind INT);
CREATE INDEX by_name ON item(name);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $(scale 12000))
  INSERT INTO item SELECT i, 'name' || (i * 7919 % 100003), i * 1.25, i % 17 FROM n;
COMMIT;
SELECT kind, count(*), sum(price), max(name) FROM item GROUP BY kind ORDER BY 3 DESC;
UPDATE item SET price = price * 2 WHERE id % 3 = 0;
SELECT count(*) FROM item a JOIN item b ON a.name = b.name WHERE a.kind = b.kind;
SELECT name FROM item WHERE name LIKE '%99%' ORDER BY name LIMIT 20;
DELETE FROM item WHERE kind > 12;
PRAGMA integrity_check;
SQL
  esac
}

# make_program PROGRAM COMPILER... : $work/PROGRAM, all of it at once, to the file $to
make_program() {
  local program=$1
  is_more "$1" && { make_more "$@"; return; }
  shift
  (
    cd "$work/$program"
    case $program in
    bzip2) "$@" -D_FILE_OFFSET_BITS=64 blocksort.c huffman.c crctable.c randtable.c compress.c decompress.c bzlib.c bzip2.c ;;
    lua) "$@" -DLUA_USE_POSIX -DLUA_USE_DLOPEN $(ls src/*.c | grep -v /luac.c) -Wl,-E -lm -ldl ;;
    sqlite) "$@" -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION sqlite3.c shell.c -lm ;;
    threads) "$@" -pthread soft_threads.c ;;
    esac
  ) >"$work/log" 2>&1 || stop "cannot build $program with $*"
}

# make_package PACKAGE ETCH HOW TO: pbzip2 or memcached by its own makefile, in TO.tree, and the program at TO. HOW: plain, with
# clang, or record. pbzip2's literals are older than C++11, which clang refuses without that option, with or without etch.
make_package() {
  local cc="clang-19" cxx="clang++-19"
  [ "$3" = record ] && cc="$2 cc --record" && cxx="$2 c++ --record"
  rm -rf "$4.tree" && cp -a "$sources/$1"-* "$4.tree"
  (
    cd "$4.tree"
    case $1 in
    pbzip2) make CXX="$cxx" CXXFLAGS="-g -O2 -w -Wno-reserved-user-defined-literal -pthread -D_REENTRANT" pbzip2 ;;
    memcached) CC=$cc CFLAGS="-g -O2 -w" ./configure --disable-docs && make ;;
    esac
  ) >"$work/log" 2>&1 || stop "cannot build $1 ($3)"
  cp "$4.tree/$1" "$4"
}

# run_program PROGRAM BINARY: does its work
run_program() {
  is_more "$1" && { "$1_run" "$2" >/dev/null; return; }
  case $1 in
  bzip2) "$2" -9 <"$work/bzip2.text" | "$2" -d >/dev/null ;;
  lua) "$2" "$work/lua.script" ;;
  sqlite) "$2" :memory: <"$work/sqlite.script" ;;
  threads) "$2" "$(scale 100)" ;;
  esac >/dev/null
}
