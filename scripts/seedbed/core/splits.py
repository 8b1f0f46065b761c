"""The splits of a dataset."""

PREDICTED = ("validation", "test")  # a run predicts these
SPLITS = ("train", *PREDICTED)
