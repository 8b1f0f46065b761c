"""Figures of an experiment.

In: its tables. Out: SVG and PNG, with a caption each. Captions are worded in `templates/NAME.j2`; titles,
labels and legends are in `data/titles.yaml` and `data/labels.yaml`.
"""
