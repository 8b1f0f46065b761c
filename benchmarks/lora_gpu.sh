#!/usr/bin/env bash
# benchmarks/lora.py on a GPU, and what it leaves that is small, as one archive. In the repository's folder:
#
#   QUESTIONS=piaf_qa.fr.jsonl OUT=FOLDER PYTHON=.venv/bin/python benchmarks/lora_gpu.sh [OPTIONS of lora.py]
#
# Leaves in OUT: lora.tar.gz (tables, run.json and metrics of each run, logs, the GPU's memory once a second).

set -uo pipefail
PYTHON="${PYTHON:-.venv/bin/python}" OUT="${OUT:-results}" FOLDER="${FOLDER:-/tmp/lora_benchmark}"
mkdir -p "$OUT" "$FOLDER"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-4}" HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv | tee "$FOLDER/gpu.csv"
nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used --format=csv -lms 1000 > "$FOLDER/samples.csv" &
samples=$!
timeout "${LIMIT:-540}" "$PYTHON" benchmarks/lora.py "$FOLDER" --questions "$QUESTIONS" "$@"
rc=$?
kill "$samples" 2> /dev/null
wait "$samples" 2> /dev/null
tail -n +1 "$FOLDER"/results/lora_benchmark/trainable_parameters.csv
cd "$FOLDER" && find . \( -name model -o -name models -o -name questions -o -name data -o -name sources -o -name adapter \
    -o -name work -o -name tensorboard \) -prune -o -type f ! -name '*.safetensors' -print0 \
    | tar -czf "$OUT/lora.tar.gz" --null -T -
ls -l "$OUT/lora.tar.gz"
exit "$rc"
