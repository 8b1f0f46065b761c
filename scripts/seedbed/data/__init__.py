"""Read, clean, split and audit datasets.

In: files of a source. Out: `results/data/DATASET/` with the splits as JSONL, labels.json, duplicates.csv and
the audit.
"""
