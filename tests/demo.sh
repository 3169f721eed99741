#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# demo.sh BUILD: the main job end to end, as far as it exists.
set -eu
etch=$1/etch
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
show() { printf '\n$ %s\n' "$*"; }

show etch doctor
"$etch" doctor

"$1/tests/sample/sample_bundle" "$dir/sample.etch"
cd "$dir"
show etch info sample.etch
"$OLDPWD/$etch" info sample.etch
show etch info --verify sample.etch
"$OLDPWD/$etch" info --verify sample.etch

head -c 1500 sample.etch >cut.etch
show "head -c 1500 sample.etch >cut.etch; etch info --verify cut.etch   # as if its writer had been killed"
"$OLDPWD/$etch" info --verify cut.etch || echo "(exit status $?)"
