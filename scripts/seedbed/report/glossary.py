"""What the words and measures of the report mean, and where they come from."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seedbed.report.documents.blocks import (
    Block,
    Bullets,
    Code,
    Details,
    Figure,
    Heading,
    Paragraph,
    Table,
    cell_text,
)
from seedbed.report.stability import RISE


@dataclass(frozen=True)
class Term:
    """A term of the glossary.

    Attributes:
        term: as it is listed.
        meaning: in a sentence or two.
        source: where it comes from, with a link.
        used: pattern of the words by which a text uses the term; empty: the term itself.
        task: the task whose reports mean it so; empty: all.
    """

    term: str
    meaning: str
    source: str = ""
    used: str = ""
    task: str = ""

    @property
    def pattern(self) -> re.Pattern[str]:
        """What a text that uses the term matches."""
        return re.compile(self.used or rf"\b{re.escape(self.term)}", re.IGNORECASE)


TERMS = (
    Term(
        "seed",
        "What a run draws its randomness from: the init seed draws weights (the head; with a random init all "
        "of them), the data seed draws the order of examples and dropout.",
    ),
    Term(
        "fused seeds",
        "Seeds that are trained in one process as one batched model: their weights are stacked, and one "
        "operation computes for all of them. Each learns from its own examples alone.",
        used=r"\bfused seeds\b",
    ),
    Term(
        "init",
        "Where a run starts: from the checkpoint (pretrained), or from weights drawn anew (random).",
    ),
    Term(
        "recipe",
        "How a run is trained: learning rate, epochs, batch size and all other settings. A sweep tries "
        "several values of some, each a recipe of one family.",
    ),
    Term(
        "equal recipe",
        "The same recipe on both sides of a difference; of a sweep the first one, unless another is named.",
    ),
    Term(
        "own best",
        "Each side has the recipe of the sweep with the best mean validation accuracy of its seeds; ties go "
        "to the lower validation loss, then to the earlier recipe.",
        used=r"\bown best\b|each (side|init) at its best",
        task="classification",
    ),
    Term(
        "own best",
        "Each side has the recipe of the sweep with the lowest mean validation loss of its seeds; ties go to "
        "the higher token accuracy, then to the earlier recipe.",
        used=r"\bown best\b|each (side|init) at its best",
        task="generation",
    ),
    Term(
        "LoRA",
        "Low-rank adaptation: the model's weights are frozen, and beside some of them two small matrices are "
        "trained, whose product is added to the weight. What is kept of a run is the adapter alone.",
        "[Hu et al. 2021](https://arxiv.org/abs/2106.09685)",
        used=r"\bLoRA\b",
    ),
    Term(
        "rank",
        "The inner size r of LoRA's two matrices: a larger one can express more, and trains proportionally "
        "more parameters, r(d_in + d_out) a module.",
        used=r"\brank\b|\blora\.r\b",
    ),
    Term(
        "QLoRA",
        "LoRA beside frozen weights that are kept in 4 bits, and unpacked for each product: less memory, and "
        "weights that are rounded.",
        "[Dettmers et al. 2023](https://arxiv.org/abs/2305.14314)",
        used=r"\bQLoRA\b",
    ),
    Term(
        "nf4",
        "4-bit NormalFloat: 16 levels at the quantiles of a normal distribution, which trained weights "
        "resemble.",
        "[Dettmers et al. 2023](https://arxiv.org/abs/2305.14314)",
        used=r"\bnf4\b|\b4 bits\b|\b4-bit\b",
    ),
    Term(
        "untrained model",
        "The pretrained model as it is (method none): nothing is trained, so that all its seeds are equal.",
        used=r"\buntrained\b",
    ),
    Term(
        "unstable",
        f"A run that diverged, or of which {RISE}.",
        used=r"\bunstable\b|\binstability\b",
    ),
    Term(
        "seeds a side",
        "How many seeds each side of a difference was run with.",
    ),
    Term(
        "paired, unpaired",
        "Paired: the runs of one seed saw the same examples in the same order on both sides, so that the "
        "difference of each pair counts. Unpaired: the sides are independent groups of runs.",
        used=r"\b(un)?paired\b|\bpairs of seeds\b",
    ),
    Term(
        "accuracy",
        "Share of examples whose most probable class is their label. Differences of accuracies are in "
        "points: from 78% to 80% is 2 points.",
        task="classification",
    ),
    Term(
        "token accuracy",
        "Share of the reference answers' tokens that are the most probable one after the right tokens before "
        "them; all tokens of a split count alike.",
    ),
    Term(
        "exact match",
        "Share of answers that are the reference after normalisation: lower case, without punctuation, "
        "without the English articles a, an and the before another word, single spaces; kinds of apostrophes "
        "and dashes are one. Symbols such as + and %, the sign of a number and what stands between two "
        "digits count. Differences are in points.",
        "[Rajpurkar et al. 2016](https://arxiv.org/abs/1606.05250)",
    ),
    Term(
        "F1",
        "Overlap of an answer's words with the reference's, normalised in the same way: the harmonic mean of "
        "the shares of either's words that the other has, mean over the examples.",
        "[Rajpurkar et al. 2016](https://arxiv.org/abs/1606.05250)",
        used=r"\bF1\b",
    ),
    Term(
        "perplexity",
        "The exponential of the loss: among how many equally probable tokens the model in effect chooses.",
        "[Jelinek et al. 1977](https://doi.org/10.1121/1.2016299)",
    ),
    Term(
        "nats",
        "Unit of a negative natural logarithm of a probability; divided by 0.693 it is in bits.",
        used=r"\bnats\b",
        task="generation",
    ),
    Term(
        "loss",
        "Mean over the tokens of all reference answers, the end token included, of −ln of the probability "
        "that the model gives to the token after the prompt and the right tokens before it.",
        task="generation",
    ),
    Term(
        "loss",
        "Mean over examples of −ln of the probability that the model gives to the label, in nats; divided by "
        "0.693 it is in bits, as fairseq logs it.",
        task="classification",
    ),
    Term(
        "selected checkpoint",
        "Of each run the epoch with the best validation accuracy; ties go to the lower validation loss, then "
        "to the earlier epoch. The test set is read by it alone.",
        used=r"selected checkpoint|checkpoint of each run|checkpoint that is best on validation",
        task="classification",
    ),
    Term(
        "selected checkpoint",
        "Of each run the epoch with the lowest validation loss; ties go to the higher token accuracy, then "
        "to the earlier epoch. The model before training is never selected, but by method none. The test set "
        "is read by the selected checkpoint alone.",
        used=r"selected checkpoint|checkpoint of each run|checkpoint that is best on validation",
        task="generation",
    ),
    Term(
        "collapsed",
        "A run that predicts one class throughout validation or test, where so many examples make that more "
        "than chance, or whose loss became infinite or NaN. Such runs often end no better than the majority "
        "class, and are then called failed.",
        "[Mosbach et al. 2021](https://arxiv.org/abs/2006.04884)",
        task="classification",
    ),
    Term(
        "collapsed",
        "A run that gives one and the same answer to all questions of validation or test, where these are 12 "
        "or more with several references, or whose loss became infinite or NaN.",
        task="generation",
    ),
    Term(
        "no verdict",
        "A difference is called neither better, worse, settled nor equivalent, whatever its interval, where "
        "no run of either side learned anything, where a side has fewer than three seeds, or where collapsed "
        "runs decide it: without them the verdict would be another, or fewer than three seeds would be left.",
        used=r"\b[Nn]o verdict\b",
    ),
    Term(
        "sample sd",
        "Standard deviation over seeds with n − 1 in the denominator.",
        used=r"\bsample (sd|standard deviation)",
    ),
    Term(
        "interquartile mean",
        "Mean of the middle half of the seeds.",
        "[Agarwal et al. 2021](https://arxiv.org/abs/2108.13264)",
    ),
    Term(
        "binomial standard error",
        "√(p(1 − p) / m): how far an accuracy p on m test examples lies from that on infinitely many.",
    ),
    Term(
        "Multi-Bootstrap",
        "Interval from replicates that each draw seeds and test examples anew, with replacement, so that it "
        "holds for other seeds and other test examples. As published, its bounds are percentiles of the "
        "replicates, which is too narrow where few seeds differ much; here they are stretched to the "
        "standard error of a two-way random-effects analysis and to Student's t, where that is wider.",
        "[Sellam et al. 2022](https://arxiv.org/abs/2106.16163)",
    ),
    Term(
        "Welch's t",
        "Interval of a difference of two independent groups of seeds whose spreads may differ.",
        "[Welch 1947](https://doi.org/10.1093/biomet/34.1-2.28)",
        used=r"\bWelch\b",
    ),
    Term(
        "exact permutation test",
        "Of all ways to swap the sides of the pairs (paired) or to deal the seeds to both sides (unpaired), "
        "the share whose difference is at least as large as the one seen.",
        "[Pitman 1937](https://doi.org/10.2307/2984124)",
        used=r"\bpermutation test\b|\bexact (two-sided |test|p\b)",
    ),
    Term(
        "Holm's correction",
        "p-values adjusted so that among all tests of a table the chance of a single false alarm stays at "
        "the level.",
        "[Holm 1979](https://www.jstor.org/stable/4615733)",
        used=r"\bHolm\b",
    ),
    Term(
        "power",
        "The chance that a test finds a true difference of a given size.",
        used=r"\bpower of\b",
    ),
    Term(
        "margin",
        "The largest difference between the frameworks that counts as none; the config sets it for each "
        "init before any run.",
        used=r"\bmargin\b|equivalent within",
    ),
    Term(
        "equivalence test",
        "Two one-sided t tests (TOST) of whether a difference lies inside the margin: a small p says that "
        "both sides are equivalent within the margin. Their error is the larger of the standard error over "
        "seeds and test examples and the one that the width of the interval stands for.",
        "[Schuirmann 1987](https://doi.org/10.1007/BF01068419)",
        used=r"\bone-sided tests\b|\bp, equivalence\b|\bequivalent\b",
    ),
    Term(
        "probability of improvement",
        "Probability that a random seed of the first side has a higher test accuracy than one of the second; "
        "ties count half.",
        "[Agarwal et al. 2021](https://arxiv.org/abs/2108.13264)",
    ),
    Term(
        "ASO, ε_min",
        "Almost stochastic order: an upper bound of how far the first side is from being better at every "
        "quantile: 0 is better throughout, 0.5 no better than worse. A description, not a test: in "
        "simulations it often fell below 0.5 between equal sides (benchmarks/results/statistics).",
        "[del Barrio et al. 2018](https://arxiv.org/abs/1705.01788), "
        "[Dror et al. 2019](https://aclanthology.org/P19-1266/)",
        used=r"\bASO\b",
    ),
    Term(
        "McNemar's test",
        "Exact test of two trained models on the same examples, from those that only one of them gets right.",
        "[McNemar 1947](https://doi.org/10.1007/BF02295996)",
        used=r"\bMcNemar\b",
    ),
    Term(
        "expected best of n",
        "Expected maximum of n draws with replacement from the values seen: what a search of n settings "
        "finds, or what reporting the best of n seeds would show.",
        "[Dodge et al. 2019](https://aclanthology.org/D19-1224/)",
        used=r"\bexpected best\b",
    ),
    Term(
        "variance decomposition",
        "Two-way analysis of variance of test accuracy over init seeds and data seeds.",
        "[Dodge et al. 2020](https://arxiv.org/abs/2002.06305)",
        used=r"\banalysis of variance\b",
    ),
    Term(
        "ECE",
        "Expected calibration error: mean over 10 equal bins of the predicted class's probability, weighted "
        "by their examples, of the distance between mean probability and accuracy.",
        "[Guo et al. 2017](https://arxiv.org/abs/1706.04599)",
        used=r"\bECE\b",
    ),
    Term(
        "leak",
        "A test example whose text, or a near-duplicate of it, stands in training or validation.",
    ),
    Term(
        "not above the majority class",
        "The one-sided Wilson bound of the test accuracy does not exceed the share of the largest class.",
        "[Wilson 1927](https://doi.org/10.1080/01621459.1927.10502953)",
        used=r"not above the majority class|\bWilson\b",
    ),
    Term(
        "bag of words",
        "Logistic regression on TF-IDF of words and word pairs, its regularisation chosen on validation: "
        "what the task gives without a language model.",
    ),
    Term(
        "bag of characters",
        "Logistic regression on TF-IDF of characters and their pairs: it stands in for a bag of words where "
        "texts have few words between spaces.",
    ),
)


def table(blocks: Sequence[Block], task: str = "classification") -> Table:
    """The glossary of what these blocks use, in the report of a task: term, and meaning with its source."""
    page = "\n".join(texts(blocks))
    rows = [
        (f"**{term.term}**", f"{term.meaning} {term.source}".rstrip())
        for term in TERMS
        if term.task in ("", task) and term.pattern.search(page)
    ]
    return Table("glossary", ["term", "meaning"], rows, "Terms and measures of this report.")


def texts(blocks: Sequence[Block]) -> Iterator[str]:
    """Every text that blocks show, but for texts that keep their lines, which are no prose."""
    for block in blocks:
        match block:
            case Heading(text) | Paragraph(text):
                yield text
            case Bullets(items):
                yield from items
            case Table(_, header, rows, caption):
                yield caption
                yield from map(cell_text, header)
                yield from (cell_text(cell) for row in rows for cell in row)
            case Figure(_, title, caption):
                yield from (title, caption)
            case Details(summary, inside):
                yield summary
                yield from texts(inside)
            case Code():
                continue
