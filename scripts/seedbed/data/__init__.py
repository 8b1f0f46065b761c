"""Datasets: read, cleaned, split, audited.

In: files of a source. Out: `results/data/DATASET/`, with the splits as JSONL, labels.json, duplicates.csv and
the audit.
"""
