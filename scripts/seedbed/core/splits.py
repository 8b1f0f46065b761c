"""The splits of a dataset."""

PREDICTED = ("validation", "test")  # a run predicts these
SPLITS = ("train", *PREDICTED)
LEAST_EXAMPLES = 2  # of a split; one example says nothing of the spread
# keys of splits.json on what a dataset leaves out
OTHER_LABELS, EMPTY_TEXTS, SAMPLE = "other_labels", "empty_texts", "sample"
