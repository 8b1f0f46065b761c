"""Pretrained models: taken in, converted, compared between frameworks, counted; and texts as their token ids.

In: checkpoints of a source, and prepared splits. Out: `results/models/MODEL/` with the weights in each
framework's format, and `results/data/DATASET/MODEL/` with the token ids and the parity gate.
"""
