"""Readers of datasets, a module for each format; see `seedbed.data.reading`."""
