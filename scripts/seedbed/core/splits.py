"""The splits of a dataset."""

PREDICTED = ("validation", "test")  # a run predicts these
SPLITS = ("train", *PREDICTED)
LEAST_EXAMPLES = 2  # of a split; one example says nothing of the spread
