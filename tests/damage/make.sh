#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# make.sh ETCH FOLDER: programs that fail in several ways, and bundles of their runs with every source that there is:
# FOLDER/NAME/prog, FOLDER/NAME/SOURCE.{fail,pass}.etch. Sources that this machine does not have are left out.
set -eu
etch=$1 to=$2
here=$(cd "$(dirname "$0")" && pwd)
cap=(timeout 60)

# record NAME SOURCE OUT [ARG...]
record() {
  local name=$1 source=$2 out=$3 watch=()
  shift 3
  case $name in
    race) watch=(--watch _ZL5queue) ;;
    check) watch=(--watch counter) ;;
    hang) watch=(--watch _ZL6inside) ;;
  esac
  local limit=(--clock 0 --wall 20 --hang 2 --kill --fail-on-exit)
  [ "$source" = vpt ] && limit=(--wall 3 --kill)
  "${cap[@]}" "$etch" record -o "$out" --source "$source" "${limit[@]}" "${watch[@]}" -- "$@" >/dev/null 2>&1 || true
  if [ ! -s "$out" ]; then # a machine without debug registers to spare
    "${cap[@]}" "$etch" record -o "$out" --source "$source" "${limit[@]}" -- "$@" >/dev/null 2>&1 || true
  fi
}

for source in "$here"/programs/*; do
  name=$(basename "${source%.*}")
  mkdir -p "$to/$name"
  cp "$source" "$to/$name/"
  compiler=c++
  case $source in *.c) compiler=cc ;; esac
  optimise=-O0
  case $name in crash | check) optimise=-O1 ;; esac
  (cd "$to/$name" && "$etch" $compiler --record -g $optimise -pthread "$(basename "$source")" -o prog)
  for with in none soft vpt; do
    (cd "$to/$name" && record "$name" $with $with.fail.etch ./prog && record "$name" $with $with.pass.etch ./prog 1)
  done
  [ "$name" = check ] && (cd "$to/$name" && record check none status.fail.etch ./prog 1 2)
  find "$to/$name" -name '*.etch' -size 0 -delete
done
