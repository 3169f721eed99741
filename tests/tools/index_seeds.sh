#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# index_seeds.sh ETCH FOLDER: indexes of etch report as seeds.
set -eu
etch=$1 folder=$2
source=$(dirname "$0")/../programs/report
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$etch" cc --record -O1 -g "$source/regression.c" -o "$work/program"
"$etch" record --source soft -o "$work/run.etch" "$work/program" >/dev/null 2>&1
"$etch" report "$work/run.etch" --index "$folder/soft" >/dev/null
"$etch" report "$work/run.etch" --instructions --index "$folder/instructions" >/dev/null
