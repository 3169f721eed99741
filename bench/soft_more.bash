# SPDX-License-Identifier: MIT
# Sourced by soft_programs.bash: more programs from Debian's sources, on which the recorder was not tuned. Each has NAME_source
# (the Debian package), NAME_prepare, NAME_make and NAME_run. NAME_make takes the compiler in the arrays cc and cxx and makes $out.
# What a program's own makefile generates is made once, by clang; what is measured is compiled by the column's compiler.
more_programs='brotli lz4 zstd gzip lzip mujs duktape mawk jq expat pugixml leveldb server pbzip2x100'

is_more() { [[ " $more_programs " == *" $1 "* ]]; }

# made_once PACKAGE COMMAND: runs it in the package's source, once for all benches
made_once() {
  local tree
  tree=$(echo "$sources/$1"-*/)
  [ -e "$tree/.made" ] && return 0
  (cd "$tree" && bash -ec "$2" && touch .made) >"$work/log" 2>&1 || stop "cannot prepare $1"
}

# text MB FILE: prose and code, the same each time
text() {
  [ "$(stat -c %s "$2" 2>/dev/null)" = $(($1 << 20)) ] && return 0
  find "$sources" -name '*.[ch]' -not -path '*/.*' | LC_ALL=C sort | head -n 4000 | tr '\n' '\0' | xargs -0 cat 2>/dev/null | head -c "$1"M >"$2" || true
}

both_ways() { # COMPRESS DECOMPRESS FILE
  eval "$1" <"$3" | eval "$2" >/dev/null
}

brotli_source=brotli
brotli_make() { "${cc[@]}" -Ic/include c/common/*.c c/dec/*.c c/enc/*.c c/tools/brotli.c -lm -o "$out"; }
brotli_prepare() { text $(scale 4) "$work/brotli.text"; }
brotli_run() { both_ways "'$1' -q 7 -c" "'$1' -d -c" "$work/brotli.text"; }

lz4_source=lz4
lz4_make() { "${cc[@]}" -Ilib lib/*.c programs/{bench,datagen,lz4cli,lz4io}.c -o "$out"; }
lz4_prepare() { text $(scale 8) "$work/lz4.text"; }
lz4_run() { both_ways "'$1' -6 -c" "'$1' -d -c" "$work/lz4.text"; }

zstd_source=libzstd
zstd_make() {
  "${cc[@]}" -DZSTD_DISABLE_ASM -DZSTD_MULTITHREAD -Ilib -Ilib/common lib/{common,compress,decompress,dictBuilder}/*.c programs/*.c \
    -pthread -o "$out"
}
zstd_prepare() { text $(scale 8) "$work/zstd.text"; }
zstd_run() { both_ways "'$1' -q -7 -c" "'$1' -q -d -c" "$work/zstd.text"; }

gzip_source=gzip
gzip_make() {
  "${cc[@]}" -I. -Ilib {bits,deflate,gzip,inflate,trees,unlzh,unlzw,unpack,unzip,util,version,zip}.c lib/libgzip.a -o "$out"
}
gzip_prepare() {
  made_once gzip 'find . -exec touch -r configure {} +; CC=clang-19 ./configure && make CC=clang-19'
  text $(scale 3) "$work/gzip.text"
}
gzip_run() { both_ways "'$1' -6 -c" "'$1' -d -c" "$work/gzip.text"; }

lzip_source=lzip # C++
lzip_make() { "${cxx[@]}" -DPROGVERSION='"1"' *.cc -o "$out"; }
lzip_prepare() { text $(scale 1) "$work/lzip.text"; }
lzip_run() { both_ways "'$1' -2 -c" "'$1' -d -c" "$work/lzip.text"; }

script() { # ROUNDS: for two interpreters of the same language
  cat <<JS
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
var seed = 42;
function random(n) { seed = (seed * 1103515 + 12345) % 2147483; return seed % n; }
var total = 0;
for (var round = 0; round < $1; round++) {
  total += fib(17);
  var words = [];
  for (var i = 0; i < 1500; i++) words.push(String.fromCharCode(97 + random(26), 97 + random(26)) + random(1000));
  words.sort();
  var counts = {};
  words.join(" ").replace(/[a-z]+/g, function (w) { counts[w] = (counts[w] || 0) + 1; return w; });
  var copy = JSON.parse(JSON.stringify({ counts: counts, words: words }));
  for (var w in copy.counts) total += copy.counts[w];
  var board = [];
  for (var i = 0; i < 20000; i++) board[i % 64] = (i * 7 + total) & 255;
}
JS
}

mujs_source=mujs
mujs_make() { "${cc[@]}" one.c main.c -lm -o "$out"; }
mujs_prepare() { script $(scale 12) >"$work/mujs.script"; }
mujs_run() { "$1" "$work/mujs.script"; }

duktape_source=duktape
duktape_make() { "${cc[@]}" -DDUK_CMDLINE_PRINTALERT_SUPPORT -Iexamples/cmdline -Isrc -Iextras/print-alert src/duktape.c examples/cmdline/duk_cmdline.c \
  extras/print-alert/duk_print_alert.c -lm -o "$out"; }
duktape_prepare() { script $(scale 8) >"$work/duktape.script"; }
duktape_run() { "$1" "$work/duktape.script"; }

mawk_source=mawk
mawk_make() { "${cc[@]}" -I. -DHAVE_CONFIG_H $(ls *.c | grep -v 'makescan\|rexpdb\|fpe_check\|rexp[0-9]*.c\|trace.c\|regexp_system') -lm -o "$out"; }
mawk_prepare() {
  made_once mawk 'CC=clang-19 ./configure && make CC=clang-19'
  text $(scale 2) "$work/mawk.text"
}
mawk_run() {
  "$1" '{ for (i = 1; i <= NF; i++) if ($i ~ /^[a-z_]+$/) n[$i]++; chars += length($0) } /return/ { sub(/return */, "give "); s = s substr($0, 1, 1); if (length(s) > 200) s = "" }
        END { for (w in n) t += n[w]; print t, chars }' "$work/mawk.text"
}

jq_source=jq
jq_make() {
  "${cc[@]}" -I. -Isrc -D_GNU_SOURCE -DIEEE_8087=1 -DHAVE_MEMMEM=1 -DHAVE_MKSTEMP=1 -DHAVE_ISATTY=1 -DHAVE_TIMEGM=1 -DHAVE_GMTIME_R=1 -DHAVE_PTHREAD_KEY_CREATE=1 \
    $(ls src/*.c | grep -v inject_errors) -lm -pthread -o "$out"
}
jq_prepare() { # as its makefile does
  sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$/\\n"/' "$work/jq/src/builtin.jq" >"$work/jq/src/builtin.inc"
  echo '#define JQ_VERSION "1"' >"$work/jq/src/version.h"
  python3 -c "
import json, random
random.seed(1)
print(json.dumps([{'id': i, 'name': 'n%d' % random.randrange(9999), 'tags': [random.random() for _ in range(5)], 'in': {'a': None, 'b': i % 7}} for i in range($(scale 6000))]))" >"$work/jq.json"
}
jq_run() { "$1" '[.[] | select(.in.b > 2) | {id, n: (.name | length), t: (.tags | add)}] | group_by(.n) | map({n: .[0].n, c: length, m: (map(.t) | max)})' "$work/jq.json"; }

expat_source=expat # a shared library, and a program over it
expat_make() {
  mkdir -p "$out.lib"
  cd expat
  "${cc[@]}" -fPIC -shared -Ilib lib/xml{parse,role,tok}.c -o "$out.lib/libexpat.so"
  "${cc[@]}" -fPIC -Ilib xmlwf/{xmlwf,xmlfile,codepage,readfilemap}.c -L"$out.lib" -lexpat -Wl,-rpath,"$out.lib" -o "$out"
}
xml() { # ITEMS
  python3 -c "
print('<?xml version=\"1.0\"?>\n<items>')
for i in range($1):
    print('<item id=\"%d\" name=\"n%d &amp; co\"><price cur=\"EUR\">%d.%02d</price><text>some words &lt;here&gt; &#228; %s</text><empty/></item>' % (i, i * 7919 % 10007, i, i % 100, 'x' * (i % 50)))
print('</items>')"
}
expat_prepare() {
  printf '#define %s\n' 'XML_CONTEXT_BYTES 1024' 'XML_DTD 1' 'XML_NS 1' 'XML_GE 1' 'HAVE_GETRANDOM 1' 'HAVE_UNISTD_H 1' 'BYTEORDER 1234' \
    'PACKAGE_VERSION "2"' >"$work/expat/expat/lib/expat_config.h"
  xml $(scale 25000) >"$work/expat.xml"
}
expat_run() { for _ in 1 2 3; do "$1" -n "$work/expat.xml"; done; }

pugixml_source=pugixml # C++
pugixml_make() { "${cxx[@]}" -Isrc src/pugixml.cpp "$here/soft_xml.cc" -o "$out"; }
pugixml_prepare() { xml $(scale 40000) >"$work/pugixml.xml"; }
pugixml_run() { "$1" "$work/pugixml.xml" 3; }

leveldb_source=leveldb # C++, two threads
leveldb_make() {
  "${cxx[@]}" -std=c++17 -DLEVELDB_PLATFORM_POSIX=1 -Iinclude -I. $(ls db/*.cc table/*.cc util/*.cc | grep -v '_test.cc\|testutil\|windows\|leveldbutil') \
    helpers/memenv/memenv.cc "$here/soft_store.cc" -pthread -o "$out"
}
leveldb_prepare() {
  printf '#define HAVE_FDATASYNC 1\n#define HAVE_O_CLOEXEC 1\n#define HAVE_CRC32C 0\n#define HAVE_SNAPPY 0\n#define HAVE_FULLFSYNC 0\n' >"$work/leveldb/port/port_config.h"
}
leveldb_run() { "$1" $(scale 60000); }

server_source=memcached # a server under load: the server's time alone
server_make() {
  local tree=$out.tree
  rm -rf "$tree" && cp -a . "$tree"
  (cd "$tree" && make -j2 CC="${cc[*]}" CFLAGS="-pthread" memcached)
  cp "$tree/memcached" "$out"
}
server_prepare() { made_once memcached 'CC=clang-19 ./configure --disable-docs'; }
server_run() { python3 "$here/soft_load.py" "$work" $(scale 12000) "$1" -A -t 4 -m 64 -u root; }

pbzip2x100_source='pbzip2 bzip2' # C++, a hundred threads
pbzip2x100_make() {
  local f
  for f in blocksort huffman crctable randtable compress decompress bzlib; do
    "${cc[@]}" -c -D_FILE_OFFSET_BITS=64 "$sources"/bzip2-*/$f.c -o "$out.$f.o"
  done
  "${cxx[@]}" -Wno-reserved-user-defined-literal -D_REENTRANT -DUSE_STACKSIZE_CUSTOMIZATION -I"$(echo "$sources"/bzip2-*/)" *.cpp "$out".*.o -pthread -o "$out"
}
pbzip2x100_prepare() { text $(scale 2) "$work/pbzip2.text"; }
pbzip2x100_run() { ETCH_RING_THREADS=110 both_ways "'$1' -p100 -b1 -1 -c" "'$1' -p100 -d -c" "$work/pbzip2.text"; }

prepare_more() { # PROGRAM
  local package of=$1_source
  for package in ${!of}; do
    fetch "$package" || stop "no source of $package"
  done
  mkdir -p "$work/$1"
  set -- "$1" ${!of}
  cp -a "$sources/$2"-*/. "$work/$1"
  "$1_prepare"
  cp -a "$sources/$2"-*/. "$work/$1" # with what was made
  "$1_prepare"
}

# make_more PROGRAM COMPILER FLAGS... -o OUT [OBJECT]: the options of make_program
make_more() {
  local program=$1 out word cc cxx rest=()
  shift
  while (($#)); do
    if [ "$1" = -o ]; then
      out=$2
      shift
    else
      rest+=("$1")
    fi
    shift
  done
  cc=("${rest[@]}") cxx=("${rest[@]}")
  case ${rest[0]} in
  clang-19) cxx[0]=clang++-19 ;;
  *) cxx[1]=c++ ;;
  esac
  (cd "$work/$program" && "${program}_make") >"$work/log" 2>&1 || stop "cannot build $program with $*"
}
