"""What the words and measures of the report mean, and where they come from."""

from seedbed.document import Table

TERMS = (
    (
        "seed",
        "What a run draws its randomness from: the init seed draws weights (the head; with a random init all "
        "of them), the data seed draws the order of examples and dropout.",
        "",
    ),
    (
        "init",
        "Where a run starts: from the checkpoint (pretrained), or from weights drawn anew (random).",
        "",
    ),
    (
        "accuracy",
        "Share of examples whose most probable class is their label. Differences of accuracies are in "
        "points: from 78% to 80% is 2 points.",
        "",
    ),
    (
        "loss",
        "Mean over examples of −ln of the probability that the model gives to the label, in nats; divided by "
        "0.693 it is in bits, as fairseq logs it.",
        "",
    ),
    (
        "selected checkpoint",
        "Of each run the epoch with the best validation accuracy; ties go to the lower validation loss, then "
        "to the earlier epoch. The test set is read by it alone.",
        "",
    ),
    (
        "collapsed",
        "A run that predicts one class throughout, or whose loss became infinite or NaN.",
        "[Mosbach et al. 2021](https://arxiv.org/abs/2006.04884)",
    ),
    (
        "sample sd",
        "Standard deviation over seeds with n − 1 in the denominator.",
        "",
    ),
    (
        "interquartile mean",
        "Mean of the middle half of the seeds.",
        "[Agarwal et al. 2021](https://arxiv.org/abs/2108.13264)",
    ),
    (
        "binomial standard error",
        "√(p(1 − p) / m): how far an accuracy p on m test examples lies from that on infinitely many.",
        "",
    ),
    (
        "Multi-Bootstrap",
        "Interval from replicates that each draw seeds and test examples anew, with replacement, so that it "
        "holds for other seeds and other test examples. Here the replicates are stretched to the standard "
        "error of a two-way random-effects analysis and to Student's t, since with few seeds the interval as "
        "published is too narrow where they differ much.",
        "[Sellam et al. 2022](https://arxiv.org/abs/2106.16163)",
    ),
    (
        "exact permutation test",
        "Of all ways to swap the sides of the pairs (paired) or to deal the seeds to both sides (unpaired), "
        "the share whose difference is at least as large as the one seen.",
        "[Pitman 1937](https://doi.org/10.2307/2984124)",
    ),
    (
        "Holm's correction",
        "p-values adjusted so that among all tests of a table the chance of a single false alarm stays at "
        "the level.",
        "[Holm 1979](https://www.jstor.org/stable/4615733)",
    ),
    (
        "TOST",
        "Two one-sided t tests of whether a difference lies inside a margin, with the standard error over "
        "seeds and test examples: a small p says that both sides are equivalent within the margin.",
        "[Schuirmann 1987](https://doi.org/10.1007/BF01068419)",
    ),
    (
        "probability of improvement",
        "Probability that a random seed of the first side has a higher test accuracy than one of the second; "
        "ties count half.",
        "[Agarwal et al. 2021](https://arxiv.org/abs/2108.13264)",
    ),
    (
        "ASO, ε_min",
        "Almost stochastic order: an upper bound of how far the first side is from being better at every "
        "quantile: 0 is better throughout, 0.5 no better than worse. A description, not a test: in "
        "simulations it often fell below 0.5 between equal sides (benchmarks/results/statistics).",
        "[del Barrio et al. 2018](https://arxiv.org/abs/1705.01788), "
        "[Dror et al. 2019](https://aclanthology.org/P19-1266/)",
    ),
    (
        "McNemar's test",
        "Exact test of two trained models on the same examples, from those that only one of them gets right.",
        "[McNemar 1947](https://doi.org/10.1007/BF02295996)",
    ),
    (
        "expected best of n",
        "Expected maximum of n draws with replacement from the values seen: what a search of n settings "
        "finds, or what reporting the best of n seeds would show.",
        "[Dodge et al. 2019](https://aclanthology.org/D19-1224/)",
    ),
    (
        "variance decomposition",
        "Two-way analysis of variance of test accuracy over init seeds and data seeds.",
        "[Dodge et al. 2020](https://arxiv.org/abs/2002.06305)",
    ),
    (
        "ECE",
        "Expected calibration error: mean over 10 equal bins of the predicted class's probability, weighted "
        "by their examples, of the distance between mean probability and accuracy.",
        "[Guo et al. 2017](https://arxiv.org/abs/1706.04599)",
    ),
    (
        "leak",
        "A test example whose text, or a near-duplicate of it, stands in training or validation.",
        "",
    ),
    (
        "not above the majority class",
        "The one-sided Wilson bound of the test accuracy does not exceed the share of the largest class.",
        "[Wilson 1927](https://doi.org/10.1080/01621459.1927.10502953)",
    ),
    (
        "bag of words",
        "Logistic regression on TF-IDF of words and word pairs, its regularisation chosen on validation: "
        "what the task gives without a language model.",
        "",
    ),
)


def table() -> Table:
    """The glossary: term, meaning, source."""
    rows = [(f"**{term}**", meaning, source) for term, meaning, source in TERMS]
    return Table("glossary", ["term", "meaning", "source"], rows, "Terms and measures of this report")
