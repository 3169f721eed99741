#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# doc.sh FILE.md: the commands of a document print what it says. See run_doc.py.
. "$(dirname "$0")/../e2e/lib.sh"
document=$ETCH_SOURCE/$1
unset ETCH_RING_BUDGET CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER CC CXX
export PATH=$ETCH_BUILD:$PATH HOME=$work/home LC_ALL=C.UTF-8
mkdir "$work/home" "$work/there"
cd "$work/there"
python3 "$ETCH_SOURCE/tests/docs/run_doc.py" "$document"
