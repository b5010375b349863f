#!/usr/bin/env bash
# Everything that needs an accelerator, in one call of at most 600 s, written to $OUT:
#
#     OUT=runs/h200 bash benchmarks/h200.sh
#     OUT=runs/h200 PYTHON=.venv/bin/python bash benchmarks/h200.sh decoding-1 loading
#
# With names only those parts. Each has its own limit in seconds and its own file; one that fails or
# runs out of time does not keep the next from running. Prints a line for each: the exit status
# (124: out of time) and the seconds it took. The exit status is the number of parts that failed.
set -u
cd "$(dirname "$0")/.."
OUT=${OUT:-runs/h200}
PYTHON=${PYTHON:-python}
export PYTHONPATH=src
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
weights=$(mktemp -d) # 16 GB for loading, not for $OUT
trap 'rm -rf "$weights"' EXIT
wanted=" $* "
failed=0

part() { # NAME SECONDS COMMAND...
    local name=$1 limit=$2 began=$SECONDS status
    shift 2
    if [ "$wanted" != "  " ] && [[ "$wanted" != *" $name "* ]]; then return; fi
    timeout -k 3 "$limit" "$PYTHON" "$@" >"$OUT/$name.txt" 2>&1
    status=$?
    [ $status -eq 0 ] || failed=$((failed + 1))
    echo "$name: status $status, $((SECONDS - began)) of $limit s" | tee -a "$OUT/parts.txt"
}

: >"$OUT/parts.txt"
part tests 110 -m pytest tests/gpu -o addopts=-q
part decoding-1 85 benchmarks/decoding.py --device cuda --json "$OUT/decoding-1.json"
part decoding-8 60 benchmarks/decoding.py --device cuda --rows 8 --steps 16 --json "$OUT/decoding-8.json"
part decoding-4-layers 45 benchmarks/decoding.py --device cuda --layers 4 --profile --json "$OUT/decoding-4-layers.json"
part loading 75 benchmarks/loading.py "$weights"
part sampling 35 benchmarks/sampling.py --profile
part sampling-text 30 benchmarks/sampling.py --text
part training 45 benchmarks/training.py --only zoo
part training-text 40 benchmarks/training.py --text masked
part vocabulary 30 benchmarks/vocabulary.py --rounds 2 --vocab 126464 --models bert --samplers "blocks(size=32, inner=confidence(block=1))"
exit $failed
