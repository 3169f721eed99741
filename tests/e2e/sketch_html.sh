#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The HTML picture in headless Chromium, from file://, with a mouse and a keyboard. ETCH_SHOTS=FOLDER keeps screenshots.
. "$(dirname "$0")/lib.sh"
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
  skip "no Chromium here (apt-get install chromium)"
expect 0 python3 "$ETCH_SOURCE/tests/sketch/page.py" "$ETCH_BUILD/tests/sketch_picture" "$work" ${ETCH_SHOTS:+"$ETCH_SHOTS"}
cat "$work/out"
done_checking
