#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# cmake --install into a staged prefix: the programs work from there, the recorder needs no LLVM, and without etch-llvm the commands that
# need it say so. And etch --version: which commit, in a work tree, in a copy made by git archive, and in any other copy.
. "$(dirname "$0")/lib.sh"
stage=$work/stage
expect 0 env DESTDIR="$stage" cmake --install "$ETCH_BUILD" --prefix /usr
bin=$stage/usr/bin
for file in lib/etch/etch-sync.so lib/etch/etch-soft.o share/man/man1/etch.1 share/man/man1/etch-record.1 share/man/man5/etch-policy.5 \
  share/man/man7/etch.7 share/bash-completion/completions/etch share/zsh/site-functions/_etch share/fish/vendor_completions.d/etch.fish; do
  [ -f "$stage/usr/$file" ] || fail "$file is not installed"
done
export HOME=$work/home PATH=$bin:/usr/bin:/bin
cd "$work"
cat >race.cpp <<'END'
#include <memory>
#include <thread>
static std::unique_ptr<int> box;
int main()
{
    box = std::make_unique<int>(1);
    std::thread t([] { volatile int seen = *box; (void)seen; });
    box.reset();
    t.join();
}
END
expect 0 etch c++ --record -std=c++17 -g -pthread race.cpp -o race
expect 0 etch explore --no-cause -o race.schedule.etch ./race # with etch-lab.o of the prefix
has out "SIGSEGV"
printf 'int main(void) { return 0; }\n' >calm.c
expect 0 etch cc --record -g calm.c -o calm
expect 0 etch record --source soft -o run.etch -- ./calm # with etch-soft.o and etch-sync.so
expect 0 etch info --verify run.etch

! ldd "$bin/etch" | grep -i llvm || fail "the recorder loads LLVM"
mv "$bin/etch-llvm" "$bin/away"
expect 0 etch record --source soft -o again.etch -- ./calm
expect 1 etch explore ./race
has err "(try: install etch-llvm beside etch)"

# commit FOLDER: what etch --version would say of that tree
commit() { cmake -DSOURCE="$1" -DOUT="$work/commit.h" -P "$1/cmake/commit.cmake" && sed -n 's/.*ETCH_COMMIT "\(.*\)"/\1/p' "$work/commit.h"; }
says() {
  checks=$((checks + 1))
  got=$(commit "$1")
  [ "$got" = "$2" ] || fail "$3: the commit is '$got', not '$2'"
}
command -v git >/dev/null || { done_checking; exit; }
mkdir -p tree/cmake
cp "$ETCH_SOURCE/cmake/commit.cmake" "$ETCH_SOURCE/cmake/commit.txt" tree/cmake
cp "$ETCH_SOURCE/.gitattributes" tree
says tree "" "no git"
git -C tree init -q
git -C tree add -A
git -C tree -c user.name=t -c user.email=t@localhost commit -qm t
id=$(git -C tree rev-parse --short=12 HEAD)
says "$work/tree" "$id" "a work tree"
git -C tree archive --prefix=archive/ HEAD | tar x
says archive "$id" "git archive"
mkdir tree/inner
cp -r tree/cmake tree/inner
says tree/inner "" "a copy inside of another work tree"
echo '# changed' >>tree/cmake/commit.cmake
says "$work/tree" "$id, changed" "a changed work tree"
done_checking
