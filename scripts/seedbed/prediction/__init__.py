"""Finished runs as classifiers of new texts: their weights, predictions, and whole models for others.

In: run folders, the data and models that they were trained on, and new texts. Out: predictions, and folders
that Transformers loads without Seedbed.
"""
