#!/usr/bin/env bash
# benchmarks/bench on a host with GPUs, step by step. Of run and equivalence what LIMIT seconds cut off goes on when it is
# called again; compare and scaling measure anew, and add rows.
# In the repository's folder, with its environment:
#
#   STEP=run|equivalence|compare|scaling OUT=FOLDER MIRROR=DIR PYTHON=.venv/bin/python benchmarks/bench_gpu.sh [OPTIONS]
#
# run: (a) beside (b), as `make bench`; OPTIONS such as --set gpus.runs_per_gpu=6 --set recipes.lab.precision=bfloat16.
# equivalence: ten seeds of (a), AT_ONCE (6) sharing the GPU. compare: ten seeds of (b), and the test.
# scaling: one grid for each of SEEDS ("3 10 25"), KINDS ("separate fused") and BATCH_SIZES ("8"), on GPUS (1), then the page.
# Everything lies in FOLDER (results/bench/gpu); what is small is copied to OUT.

set -euo pipefail
PYTHON="${PYTHON:-.venv/bin/python}" OUT="${OUT:-results/bench/out}" FOLDER="${FOLDER:-results/bench/gpu}"
CONFIG="${CONFIG:-experiments/cls_books.yaml}" STEP="${STEP:-run}" GPUS="${GPUS:-1}" RUNS_PER_GPU="${RUNS_PER_GPU:-6}"
mkdir -p "$OUT" "$FOLDER"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
common=(--folder "$FOLDER" --configfile "$CONFIG" ${MIRROR:+--mirror "$MIRROR"})

bench() {
    timeout --signal=TERM "${LIMIT:-580}" "$PYTHON" benchmarks/bench "$@"
}

case "$STEP" in
    run)
        bench run "${common[@]}" --mode grid --resume --keep "$OUT" "$@"
        ;;
    equivalence)
        bench equivalence "$OUT/lab.csv" "${common[@]}" --at-once "${AT_ONCE:-6}" "$@"
        ;;
    compare)
        bench measure "$OUT/seeds10.csv" "${common[@]}" --seeds 10 --gpus "$GPUS" --runs-per-gpu "$RUNS_PER_GPU" "$@"
        cp "$FOLDER/results/bench_measure/runs.csv" "$OUT/seedbed_runs.csv"
        bench compare "$OUT/lab.csv" "$OUT/seedbed_runs.csv" --configfile "$CONFIG" --output "$OUT/equivalence"
        ;;
    scaling)
        for kind in ${KINDS:-separate fused}; do
            for seeds in ${SEEDS:-3 10 25}; do
                for size in ${BATCH_SIZES:-8}; do
                    bench measure "$OUT/scaling.csv" "${common[@]}" --kind "$kind" --seeds "$seeds" --batch-size "$size" \
                        --gpus "$GPUS" --runs-per-gpu "$RUNS_PER_GPU" "$@"
                done
            done
        done
        bench scaling "$OUT/scaling.csv" "$OUT/scaling.md"
        ;;
    *)
        echo "STEP is run, equivalence, compare or scaling, not $STEP" >&2
        exit 2
        ;;
esac
