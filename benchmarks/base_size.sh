#!/usr/bin/env bash
# A model of RoBERTa-base's shape (random weights) on CLS-Books in bfloat16, one run at a time on one GPU: Seedbed beside
# plain Trainer with dynamic padding. In the repository's folder, with its environment:
#
#   OUT=FOLDER MIRROR=DIR PYTHON=.venv/bin/python benchmarks/base_size.sh

set -euo pipefail
PYTHON="${PYTHON:-.venv/bin/python}" OUT="${OUT:-results/bench/base/out}" FOLDER=results/bench/base
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
"$PYTHON" -m snakemake --cores 4 --configfile experiments/cls_books.yaml ${MIRROR:+--config mirror="$MIRROR"} \
    --until convert_checkpoint
"$PYTHON" benchmarks/base_model.py results/models/roberta_small_fr "$FOLDER/model"
"$PYTHON" benchmarks/bench run --folder "$FOLDER" --mode grid --lab-lean --keep "$OUT" ${MIRROR:+--mirror "$MIRROR"} \
    --configfile experiments/cls_books.yaml benchmarks/base_size.yaml "$@"
