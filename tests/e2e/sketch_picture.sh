#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Sketches made by hand, in all four formats: the terminal's against golden files (ETCH_GOLDEN=write makes them anew, to be
# looked at), JSON against docs/sketch.schema.json, SARIF against what the standard requires.
. "$(dirname "$0")/lib.sh"
picture=$ETCH_BUILD/tests/sketch_picture
here=$ETCH_SOURCE/tests/sketch
[ -x "$picture" ] || fail "no $picture"
samples="pbzip2 one_failure lost_update with_loss five_threads huge_values hostile empty no_failure weak contradiction session_cache threads_2 threads_8 threads_32"

for sample in $samples; do
  for set in unicode ascii; do
    for width in 40 80 120 160 200; do
      echo "==== $sample, $width columns, $set"
      "$picture" "$sample" terminal "$width" "$set"
    done
  done >"$work/$sample"
  if [ "${ETCH_GOLDEN:-}" = write ]; then
    cp "$work/$sample" "$here/golden/$sample.txt"
  fi
  same "$here/golden/$sample.txt" "$work/$sample"
done

for sample in $samples; do
  for format in json sarif html; do
    expect 0 "$picture" "$sample" "$format"
    cp "$work/out" "$work/$sample.$format"
    expect 0 "$picture" "$sample" "$format"
    same "$work/out" "$work/$sample.$format"
  done
done
expect 0 python3 "$here/schema.py" "$ETCH_SOURCE/docs/sketch.schema.json" "$work"/*.json
expect 0 python3 "$here/sarif.py" "$work"/*.sarif
expect 0 python3 "$here/schema.py" "$here/sarif.schema.json" "$work"/*.sarif

# The validator does find faults.
sed 's/"f":/"F":/' "$work/pbzip2.json" >"$work/broken"
expect 1 python3 "$here/schema.py" "$ETCH_SOURCE/docs/sketch.schema.json" "$work/broken"
has "$work/out" "no 'f'"
sed 's/"startLine": 207/"startLine": 0/' "$work/pbzip2.sarif" >"$work/broken"
expect 1 python3 "$here/sarif.py" "$work/broken"

sed 's/"importance": "essential"/"importance": "vital"/' "$work/session_cache.sarif" >"$work/broken"
expect 1 python3 "$here/schema.py" "$here/sarif.schema.json" "$work/broken"
has "$work/out" "importance"

# What the formats promise, beyond their shape.
python3 - "$work" <<'PY'
import json, sys
sketch = json.load(open(sys.argv[1] + "/pbzip2.json"))
best = sketch["predictors"][0]
assert best["kind"] == "order" and best["f"] == 1 and [s["line"] for s in best["statements"]] == [207, 141], best
assert json.load(open(sys.argv[1] + "/with_loss.json"))["steps"][5]["values"][0]["value"] is None
flows = json.load(open(sys.argv[1] + "/lost_update.sarif"))["runs"][0]["results"][0]["codeFlows"][0]["threadFlows"]
orders = {t["id"]: [x["executionOrder"] for x in t["locations"]] for t in flows}
assert orders == {"T1": [4], "T2": [1, 3], "T3": [2, 3]}, orders
log = json.load(open(sys.argv[1] + "/pbzip2.sarif"))["runs"][0]
assert log["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "pbzip/pbzip.c", "uriBaseId": "%SRCROOT%"}
assert log["originalUriBaseIds"]["%SRCROOT%"]["uri"] == "file:///src/", log
assert json.load(open(sys.argv[1] + "/no_failure.sarif"))["runs"][0]["results"] == []
lost = json.load(open(sys.argv[1] + "/with_loss.sarif"))["runs"][0]["invocations"][0]["toolExecutionNotifications"]
assert [n["level"] for n in lost] == ["warning", "warning", "note"], lost
clock, lock = json.load(open(sys.argv[1] + "/contradiction.json"))["conflicts"]
assert (clock["cpu"], clock["cpu_with"], clock["excess_cycles"], clock["object"]) == (3, 1, 412, None), clock
assert (lock["cpu"], lock["object"]) == (None, "0x5020"), lock
reported = json.load(open(sys.argv[1] + "/contradiction.sarif"))["runs"][0]["invocations"][0]["toolExecutionNotifications"]
assert reported[0]["level"] == "warning" and "The clock of CPU 3" in reported[0]["message"]["text"], reported
assert "Contradiction: The clock of CPU 3" in open(sys.argv[1] + "/contradiction.html").read()
cache = json.load(open(sys.argv[1] + "/session_cache.json"))
assert cache["input"] == "cases/expired.txt" and cache["command"] == ["./session_cache", "--sessions=8"], cache["command"]
assert cache["steps"][4]["values"][0]["from"] == 3 and cache["steps"][3]["likelihood"] == 0.97, cache["steps"][4]
assert cache["steps"][4]["passing"] == {"ran": 41, "not_run": 2, "unknown": 0, "values": [{"variable": 0, "access": "read", "runs": 41,
    "distinct": 2, "least": "0x5581c0", "most": "0x5582f0"}]}, cache["steps"][4]["passing"]
assert cache["stacks"][0]["arguments"] == ["id = 7", ""], cache["stacks"]
frames = json.load(open(sys.argv[1] + "/session_cache.sarif"))["runs"][0]["results"][0]["stacks"][0]["frames"]
assert frames[0]["parameters"] == ["id = 7"] and "parameters" not in frames[1], frames
PY
checks=$((checks + 17))

# The page loads nothing and lets nothing in.
for sample in $samples; do
  ! grep -niE 'https?://|//[a-z]+\.[a-z]|@import|url\(' "$work/$sample.html" || fail "$sample.html names something to load"
  ! grep -nE '<img|onerror=alert\(1\)"' "$work/$sample.html" || fail "$sample.html has markup of the text"
  has "$work/$sample.html" "Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-"
done
done_checking
