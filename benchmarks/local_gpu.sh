#!/usr/bin/env bash
# The GPUs of one host at work: 12 runs of experiments/cls_books.yaml, RUNS_PER_GPU (default 3) at a time on each,
# while nvidia-smi is asked once a second. In the repository's folder, with its environment:
#
#   OUT=FOLDER MIRROR=DIR PYTHON=.venv/bin/python benchmarks/local_gpu.sh
#
# MIRROR holds the two archives, or is left out where they can be downloaded. Leaves in OUT: gpus.csv and apps.csv
# (nvidia-smi), snakemake.log, runs.json, summary.txt, summary.md.

set -uo pipefail
PYTHON="${PYTHON:-.venv/bin/python}" MIRROR="${MIRROR:-null}" OUT="${OUT:-results/local_gpu_samples}"
RUNS_PER_GPU="${RUNS_PER_GPU:-3}"
mkdir -p "$OUT"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
nvidia-smi -L
env -u OMP_NUM_THREADS nproc
cat > /tmp/local_gpu.yaml <<YAML
experiment: local_gpu
mirror: $MIRROR
gpus: {devices: ${DEVICES:-auto}, runs_per_gpu: $RUNS_PER_GPU}
YAML
nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used --format=csv -lms 1000 > "$OUT/gpus.csv" &
gpus=$!
nvidia-smi --query-compute-apps=timestamp,pid,gpu_uuid,used_memory --format=csv -lms 1000 > "$OUT/apps.csv" &
apps=$!
began=$(date +%s.%N)
timeout "${LIMIT:-540}" "$PYTHON" -m snakemake --profile profiles/local-gpu \
    --configfile ${CONFIG:-experiments/cls_books.yaml} /tmp/local_gpu.yaml > "$OUT/snakemake.log" 2>&1
rc=$?
ended=$(date +%s.%N)
kill "$gpus" "$apps" 2> /dev/null
wait 2> /dev/null
[[ $rc == 0 ]] || tail -n 60 "$OUT/snakemake.log"
grep -h "to train, " "$OUT/snakemake.log"
"$PYTHON" - "$OUT" "$began" "$ended" "$rc" <<'PY' | tee "$OUT/summary.txt"
import collections, csv, datetime, json, pathlib, sys

out, began, ended, rc = pathlib.Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
print(f"snakemake: exit code {rc}, {ended - began:.0f} s wall, all preparation among it")

samples = collections.defaultdict(dict)  # second -> GPU -> (per cent, MiB)
with open(out / "gpus.csv") as stream:
    rows = [[cell.strip() for cell in row] for row in csv.reader(stream)]
counts = collections.Counter()
for row in rows[1:]:
    if len(row) == 4:
        percent, memory = (float(cell.split()[0]) if cell[0].isdigit() else 0.0 for cell in row[2:])
        samples[counts[row[1]]][row[1]] = (percent, memory)  # the k-th sample of each GPU
        counts[row[1]] += 1
indices = sorted(counts)
whole = [samples[k] for k in sorted(samples) if len(samples[k]) == len(indices)]
busy = [k for k, sample in enumerate(whole) if any(percent > 10 for percent, _ in sample.values())]
window = whole[busy[0] : busy[-1] + 1] if busy else []
for index in indices:
    all_of, within = ([sample[index][0] for sample in part] for part in (whole, window))
    print(
        f"GPU {index}: mean utilization {sum(all_of) / len(all_of):.0f}% of all {len(all_of)} samples,"
        f" {sum(within) / max(1, len(within)):.0f}% of the {len(within)} between the first and the last busy one;"
        f" most memory {max(sample[index][1] for sample in whole):.0f} MiB"
    )
both = sum(all(percent > 10 for percent, _ in sample.values()) for sample in window)
print(f"samples in which all GPUs were more than 10% busy: {both} of {len(window)} in that window, {len(whole)} in all")

with open(out / "apps.csv") as stream:
    rows = [[cell.strip() for cell in row] for row in csv.reader(stream)][1:]
at = collections.defaultdict(lambda: collections.defaultdict(set))
pids = collections.defaultdict(set)
for row in rows:
    if len(row) == 4:
        at[row[0].split(".")[0]][row[2]].add(row[1])
        pids[row[2]].add(row[1])
for uuid in sorted(pids):
    print(f"{uuid}: {len(pids[uuid])} processes in all, at most {max(len(s[uuid]) for s in at.values())} in one second (nvidia-smi)")

events = []
for log in sorted(pathlib.Path("results/local_gpu/logs").glob("finetune_*/**/*.log")):
    for line in log.read_text().splitlines():
        for word, step in (("taken", 1), ("given back", -1)):
            head, found, slot = line.partition(f"GPU slot {word}: ")
            if found:
                moment = datetime.datetime.strptime(" ".join(head.split()[:2]), "%Y-%m-%d %H:%M:%S,%f")
                events.append((moment, step, slot.split(",")[0]))
now, most = collections.Counter(), collections.Counter()
for _, step, device in sorted(events):
    now[device] += step
    most[device] = max(most[device], now[device])
for device in sorted(most):
    print(f"{device}: at most {most[device]} runs at a time (log of the slots)")

records = {}
for path in sorted(pathlib.Path("results/local_gpu/runs").glob("**/run.json")):
    record = json.loads(path.read_text())
    records[str(path.parent)] = {
        "gpu_id": record["hardware"]["gpu_id"], "device": record["device"], "seconds": record["seconds"],
        "test": record["test"], "energy_joules": record.get("energy_joules"),
    }
(out / "runs.json").write_text(json.dumps(records, indent=1))
print("runs a GPU:", dict(collections.Counter(record["gpu_id"] for record in records.values())))
PY
[[ -f results/local_gpu/summary.md ]] && cp results/local_gpu/summary.md "$OUT/"
exit "$rc"
