#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# seeds.sh ETCH PACK CORPUS: inputs for tests/fuzz/runs.c; PACK is pack_runs. The programs stay beside the corpus: the
# inputs name them.
set -eu
pack=$2 corpus=$3
programs=$(dirname "$corpus")/programs
mkdir "$programs"
bash "$(dirname "$0")/make.sh" "$1" "$programs"
for folder in "$programs"/*/; do
  folder=${folder%/}
  name=$(basename "$folder")
  for fail in "$folder"/*.fail.etch; do
    with=$(basename "$fail" .fail.etch)
    pass=$folder/$with.pass.etch
    [ -e "$pass" ] || pass=
    "$pack" --lean "$folder/prog" "$corpus/$name-$with-alone" "$fail"
    "$pack" --lean "$folder/prog" "$corpus/$name-$with" "$fail" "$fail" ${pass:+"$pass"}
  done
  "$pack" --lean "$folder/prog" "$corpus/$name-all" "$folder"/*.etch
done
"$pack" "$programs/throw/prog" "$corpus/throw-libraries" "$programs"/throw/none.*.etch
