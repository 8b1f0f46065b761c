"""Figures of an experiment.

In: its tables. Out: SVG and PNG, with a caption each.
"""
