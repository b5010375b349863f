#!/usr/bin/env bash
# Everything that needs an accelerator, in one call of at most 600 s, written to $OUT:
#
#     OUT=runs/h200 bash benchmarks/h200.sh
#     OUT=runs/h200 PYTHON=.venv/bin/python bash benchmarks/h200.sh decoding-1 loading
#
# With names only those parts. Each has its own limit in seconds; one that fails or runs out of time
# does not keep the next from running, and what no longer fits in the 600 s ($LIMIT) is left out.
# What they print goes to $OUT/log.txt, their numbers to a .json each, and a line for each, with the
# exit status (124: out of time) and the seconds, to $OUT/parts.txt and to the terminal: five files.
# The exit status is the number of parts that failed or were left out.
set -u
cd "$(dirname "$0")/.."
OUT=${OUT:-runs/h200}
PYTHON=${PYTHON:-python3}
LIMIT=${LIMIT:-590}
export PYTHONPATH=src PYTHONUNBUFFERED=1
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
weights=$(mktemp -d) # 16 GB for loading, not for $OUT
trap 'rm -rf "$weights"' EXIT
wanted=" $* "
failed=0
SECONDS=0

part() { # NAME SECONDS COMMAND...
    local name=$1 limit=$2 began=$SECONDS status
    shift 2
    if [ "$wanted" != "  " ] && [[ "$wanted" != *" $name "* ]]; then return; fi
    if [ $((LIMIT - SECONDS)) -lt "$limit" ]; then limit=$((LIMIT - SECONDS)); fi
    if [ "$limit" -lt 15 ]; then
        failed=$((failed + 1))
        echo "$name: left out, no time" | tee -a "$OUT/parts.txt"
        return
    fi
    printf '\n== %s: %s\n' "$name" "$*" >>"$OUT/log.txt"
    timeout -k 3 "$limit" "$PYTHON" "$@" >>"$OUT/log.txt" 2>&1
    status=$?
    [ $status -eq 0 ] || failed=$((failed + 1))
    echo "$name: status $status, $((SECONDS - began)) of $limit s" | tee -a "$OUT/parts.txt"
}

: >"$OUT/parts.txt"
: >"$OUT/log.txt"
part tests 210 -m pytest tests/gpu -o addopts=-q --durations=5
part decoding-1 100 benchmarks/decoding.py --device cuda --json "$OUT/decoding-1.json"
part decoding-8 70 benchmarks/decoding.py --device cuda --rows 8 --steps 16 --json "$OUT/decoding-8.json"
part decoding-4-layers 70 benchmarks/decoding.py --device cuda --layers 4 --profile --json "$OUT/decoding-4-layers.json"
part loading 100 benchmarks/loading.py "$weights"
rm -rf "${weights:?}"/*
part sampling 75 benchmarks/sampling.py --profile
part training 90 benchmarks/training.py --only eager,zoo
part sampling-text 75 benchmarks/sampling.py --text
part training-text 100 benchmarks/training.py --text masked
part vocabulary 40 benchmarks/vocabulary.py --rounds 2 --vocab 126464 --models bert --samplers "blocks(size=32, inner=confidence(block=1))"
exit $failed
