# SPDX-License-Identifier: MIT
# Sourced by what builds real C++ programs with etch: how each is built by its own build system with a given compiler, how its own test
# suite is run, and a driver for the bug that tests/real/PROGRAM.patch plants. Needs $source (the tree's root), $sources and fetch
# (debian.bash), $work, and $build/etch. HOW is plain, etch, record (compiled in, off) or recording; a tree is $work/PROGRAM.HOW.
cpp_programs="pugixml cppunit libjsoncpp spdlog"

# compilers HOW: sets $CC and $CXX
compilers() {
  case $1 in
  plain) export CC=clang-19 CXX=clang++-19 ;;
  etch) export CC="$build/etch cc" CXX="$build/etch c++" ;;
  *) export CC="$build/etch cc --record" CXX="$build/etch c++ --record" ;;
  esac
}

# package_of PROGRAM: the folder of its source
package_of() { find "$sources" -maxdepth 1 -type d -name "$1-*" -print -quit; }

cpp_fetch() { # PROGRAM
  fetch "$1" || return 1
  [ "$1" != spdlog ] || fetch fmtlib # whose headers Debian's spdlog takes
}

# copy_tree PROGRAM TREE: moves there
copy_tree() { rm -rf "$2" && cp -a "$(package_of "$1")" "$2" && cd "$2"; }

# with_cmake OPTION...: the tree's own CMakeLists.txt, -O2
with_cmake() { cmake -S . -B built -DCMAKE_BUILD_TYPE=RelWithDebInfo "$@" && cmake --build built -j2; }

cppunit_library() { ./configure --disable-doxygen --disable-static && make -j2 -C src; }

libjsoncpp_library() { with_cmake -DBUILD_STATIC_LIBS=OFF -DBUILD_OBJECT_LIBS=OFF -DJSONCPP_WITH_POST_BUILD_UNITTEST=OFF "$@"; }

# cpp_build PROGRAM HOW: with its test suite
cpp_build() (
  set -e
  compilers "$2"
  copy_tree "$1" "$work/$1.$2"
  case $1 in
  spdlog)
    cmake -S "$(package_of fmtlib)" -B fmt -DFMT_TEST=OFF -DFMT_DOC=OFF # only for its headers
    mkdir -p catch/catch2 && cp tests/catch.hpp catch/catch2            # which Debian has in a package of its own
    with_cmake -DCMAKE_CXX_FLAGS="-I$PWD/catch" -Dfmt_DIR="$PWD/fmt" -DSPDLOG_FMT_EXTERNAL=OFF -DSPDLOG_FMT_EXTERNAL_HO=ON \
      -DSPDLOG_BUILD_TESTS=ON -DSPDLOG_BUILD_EXAMPLE=OFF
    ;;
  libjsoncpp) libjsoncpp_library ;;
  cppunit) cppunit_library && make -j2 -C examples/cppunittest check TESTS= ;;
  pugixml) make -j2 BUILD=built config=release CXXFLAGS="-g -O2 -w -std=c++11" ;;
  esac
)

# cpp_test PROGRAM TREE: its own suite, once; prints how many of its tests passed, and fails with it
cpp_test() (
  suite=$work/$1.suite
  status=0
  cd "$2"
  case $1 in
  spdlog) (cd built/tests && timeout -k 5 300 ./spdlog-utests) ;;
  libjsoncpp) (cd built && timeout -k 5 300 ctest --output-on-failure) && timeout -k 5 300 built/bin/jsoncpp_test ;;
  cppunit) (cd examples/cppunittest && timeout -k 5 300 ./cppunittestmain) ;;
  pugixml) timeout -k 5 300 built/test ;;
  esac >"$suite" 2>&1 </dev/null || status=$?
  case $1 in
  spdlog) sed -n 's/^All tests passed (.* in \([0-9]*\) test cases)/\1/p' ;;
  libjsoncpp) sed -n 's/^All \([0-9]*\) tests passed/\1/p' ;;
  cppunit) sed -n 's/^OK (\([0-9]*\)).*/\1/p' ;;
  pugixml) sed -n 's/^Success: \([0-9]*\) tests passed.*/\1/p' ;;
  esac <"$suite"
  exit $status
)

# cpp_plant PROGRAM: the library with its planted bug, and the driver, with --record, at $work/PROGRAM.bug/driver
cpp_plant() (
  set -e
  compilers record
  copy_tree "$1" "$work/$1.bug"
  patch -s -p1 <"$source/tests/real/$1.patch"
  driver="$CXX -O2 -g $source/tests/real/$1_driver.cpp -o driver"
  case $1 in
  spdlog) $driver -DSPDLOG_FMT_EXTERNAL -DFMT_HEADER_ONLY -I"$(package_of fmtlib)/include" -Iinclude -pthread ;;
  libjsoncpp) libjsoncpp_library -DJSONCPP_WITH_TESTS=OFF && $driver -Iinclude -Lbuilt/lib -ljsoncpp -Wl,-rpath,"$PWD/built/lib" ;;
  cppunit) cppunit_library && $driver -Iinclude -Lsrc/cppunit/.libs -lcppunit -Wl,-rpath,"$PWD/src/cppunit/.libs" ;;
  pugixml) $driver -Isrc src/pugixml.cpp ;;
  esac
)

# cpp_failing PROGRAM: what the head of the sketch must say
cpp_failing() {
  case $1 in
  spdlog) echo "SIGSEGV in spdlog::async_logger::backend_sink_it_()" ;;
  libjsoncpp) echo "SIGSEGV in Json::Value::isNull()" ;;
  cppunit) echo "uncaught std::runtime_error in open_device()" ;;
  pugixml) echo "exit status 1 in main()" ;;
  esac
}

# cpp_diagnose PROGRAM SOURCE SECONDS: the sketch is in $work/PROGRAM.sketch
cpp_diagnose() (
  cd "$work/$1.bug"
  timeout -k 5 $(($3 + 120)) "$build/etch" diagnose --fresh --source "$2" --time "$3" -- ./driver >"$work/$1.sketch" 2>"$work/$1.summary"
)
