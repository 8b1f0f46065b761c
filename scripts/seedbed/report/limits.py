"""What the numbers of an experiment do not show, in plain words; every number of it from the tables."""

import csv
from pathlib import Path

from seedbed.core.rows import Row
from seedbed.core.words import count, join, level_text, metric_name
from seedbed.report.experiment import narrower_than_over_seeds
from seedbed.report.findings import Findings
from seedbed.report.parts import MAX_LISTED
from seedbed.sources.locations import ROOT

SIMULATIONS = ROOT / "resources" / "coverage"  # what benchmarks/coverage.py found, as a copy
SIMULATED_LEVEL = 0.95  # of the intervals whose coverage was simulated


def limits(findings: Findings) -> list[str]:
    """What the numbers of this experiment do not show, in plain words."""
    return [
        *_test_limits(findings),
        *_checkpoint_limits(findings),
        *_selection_limits(findings),
        *_interval_limits(findings),
        *_run_limits(findings),
        *(_generation_limits(findings) if _generates(findings) else []),
    ]


def _generates(findings: Findings) -> bool:
    return findings.experiment.task.name == "generation"


def _generation_limits(findings: Findings) -> list[str]:
    """What the metrics of answers do and do not say."""
    methods = {row["method"] for row in findings.experiment.summary}
    devices = list(dict.fromkeys(run["device"] for run in findings.experiment.runs))
    told = [
        "Exact match and F1 compare words after the normalisation of SQuAD: lower case, without punctuation, "
        "without the English articles a, an and the, and with single spaces. Unlike SQuAD's script, they "
        "keep symbols, signs and decimal points, so that published scores may differ a little. French "
        "articles and elisions count as words, so that an answer with another article is no exact match; and "
        "an answer that is right in other words counts as wrong.",
        "Loss, perplexity and token accuracy are teacher-forced: each token of the reference is predicted "
        "after the right ones before it. Exact match and F1 are of answers that the model writes by itself. "
        "The two can disagree, and only the loss selects checkpoints and recipes.",
        "Perplexities compare within a model alone: models with other tokens count other things.",
        "Answers are decoded greedily, the most probable token at each step, up to a largest number of new "
        "tokens; other ways to decode give other answers.",
        "One split of the data was used. Another split would give other training texts, not only other test "
        "questions; the intervals do not carry that.",
    ]
    if "none" in methods:
        told.append(
            "The runs of the untrained model (method none) are the same for every seed by construction: "
            "nothing is drawn. Their standard deviation of zero is no measurement."
        )
    if "qlora" in methods:
        told.append(
            "QLoRA starts from weights rounded to 4 bits, whose answers before training are not those of the "
            "untrained model, which is not rounded."
        )
    shown = f"{join(devices[:3])}{' and others' if len(devices) > 3 else ''}"
    told.append(
        f"Memory and time were measured on {shown}; on other hardware, with longer texts or another batch "
        "size, methods compare differently."
    )
    return told


def _test_limits(findings: Findings) -> list[str]:
    firsts = {run["dataset"]: run for run in findings.experiment.runs}
    sizes = [f"{name} {run['test_examples']:,}" for name, run in list(firsts.items())[:MAX_LISTED]]
    right = "reference answers" if _generates(findings) else "labels"
    pretrained = (
        "The corpora that the model was pretrained on may hold the test questions and their answers: that "
        "was not looked for."
        if _generates(findings)
        else "Whether test texts stand in the pretraining data was not looked for."
    )
    told = [
        f"One test set a dataset (examples: {join(sizes)}). The intervals take its examples for a random "
        f"sample of such texts, and its {right} for right; they say nothing of texts of another kind, source "
        "or time."
    ]
    leaked = {
        name: run["leaked_test_examples"] for name, run in firsts.items() if run["leaked_test_examples"]
    }
    if leaked:
        listed = join([f"{number:,} on {name}" for name, number in list(leaked.items())[:MAX_LISTED]])
        told.append(
            f"Leaked test examples count in every number that does not say otherwise: {listed}. {pretrained}"
        )
    else:
        told.append(
            f"No test example stands in training or validation, as far as {_compared(findings)} tell. "
            f"{pretrained}"
        )
    return [*told, *_repeated(findings)]


def _compared(findings: Findings) -> str:
    """Which texts were compared to find leaks."""
    blocks = findings.reporting["datasets"].values()
    if all(block.get("near_duplicates", True) is None for block in blocks):
        return "equal texts (near-duplicates were not looked for)"
    return "equal and nearly equal texts"


def _repeated(findings: Findings) -> list[str]:
    """Test examples whose text another test example has, too: they are no independent ones."""
    counts: dict[str, int] = {}
    for row in findings.audit:
        if row["split"] == "test" and row["check"] in ("repeated: exact", "repeated: near"):
            counts[row["dataset"]] = counts.get(row["dataset"], 0) + row["count"]
    listed = [f"{number:,} on {name}" for name, number in counts.items() if number][:MAX_LISTED]
    if not listed:
        return []
    return [
        f"Some test texts repeat earlier ones of the same split ({join(listed)}). The intervals take all "
        "test examples for independent ones, and so are a little too narrow."
    ]


def _checkpoint_limits(findings: Findings) -> list[str]:
    grid = findings.reporting["grid"]
    drawn, sides = "the weights of the head", "both inits"
    if _generates(findings):
        drawn, sides = "what an adapter starts from", "all methods"
    told = []
    if "pretrained" in grid["inits"]:
        told.append(
            f"All pretrained runs of a model start from one checkpoint "
            f"({join(grid['models'][:MAX_LISTED])}). Their seeds vary {drawn}, the order of "
            "examples and dropout: the intervals say nothing of a checkpoint pretrained anew."
        )
    if not any(block["swept"] for block in findings.reporting["recipes"].values()):
        told.append(
            f"Nothing was swept: {count(len(grid['recipes']), 'recipe')} for {sides}. A difference at a "
            f"recipe may come from the recipe, where it suits one {_side(findings)} better than the other; "
            "only a sweep with each side at its best can tell."
        )
    return told


def _side(findings: Findings) -> str:
    return "method" if _generates(findings) else "init"


def _selection_limits(findings: Findings) -> list[str]:
    sizes = {
        row["dataset"]: row["count"]
        for row in findings.audit
        if (row["split"], row["check"]) == ("validation", "examples")
    }
    on = join([f"{number:,} on {name}" for name, number in list(sizes.items())[:MAX_LISTED]])
    told = [
        f"The checkpoint of each run was selected on the validation examples{f' ({on})' if on else ''}. The "
        "intervals take that choice as it was: other validation examples could have selected other epochs."
    ]
    if any(row["selection"] == "best" for row in findings.experiment.contrasts):
        told.append(
            "Where each side has its own best recipe, the interval carries that choice, over validation "
            "examples and seeds, but only among the values that were swept: a better one may lie beyond them."
            f"{simulated_coverage_of_choice(_fewest_seeds(findings, 'best'), findings.experiment.confidence)}"
        )
    return told


def _interval_limits(findings: Findings) -> list[str]:
    rows = [row for row in findings.experiment.contrasts if row["delta"] is not None]
    if not rows:
        return []
    told = []
    seeds = _fewest_seeds(findings)
    if seeds:
        told.append(
            f"The intervals rest on as few as {count(seeds, 'seed')} a side. They assume that the mean over "
            "seeds and test examples is nearly normal, and estimate its spread from these few."
            f"{simulated_coverage(seeds, findings.experiment.confidence)}"
        )
    told += _narrower(rows, findings.experiment.confidence)
    without = sum(row["ci_low"] is None for row in rows)
    if without:
        told.append(
            f"{without:,} of {count(len(rows), 'difference')} have no interval over seeds and test examples: "
            "one seed on a side, no spread at all, or no predictions."
        )
    level = 100 * findings.experiment.confidence
    told.append(
        f"Each interval has its {level:.4g}% by itself, for {count(len(rows), 'difference')} in all; only "
        "the p of Holm's correction is for a whole table."
    )
    return told


def _narrower(rows: list[Row], confidence: float) -> list[str]:
    """How many intervals are narrower than those over seeds alone, and how often either kind is right."""
    found = [row for row in rows if narrower_than_over_seeds(row)]
    if not found:
        return []
    seeds = min(min(row["n_a"], row["n_b"]) for row in found)
    return [
        f"The interval of {len(found):,} of {count(len(rows), 'difference')} is narrower than Student's or "
        "Welch's over seeds alone: that one knows its spread from the seeds only, with n − 1 degrees of "
        "freedom where n seeds are paired, while this one pools seeds and test examples."
        f"{simulated_coverage_of_both(seeds, confidence)}"
    ]


def _fewest_seeds(findings: Findings, selection: str | None = None) -> int:
    """The fewest seeds a side behind an interval; 0 where there is none."""
    return min(
        (
            min(row["n_a"], row["n_b"])
            for row in findings.experiment.contrasts
            if row["ci_low"] is not None and selection in (None, row["selection"])
        ),
        default=0,
    )


def simulated_coverage(seeds: int, confidence: float, path: Path = SIMULATIONS / "coverage.csv") -> str:
    """How often intervals held the true difference in simulations of so many seeds, as a sentence.

    Empty where that level or so few seeds were not simulated.

    Args:
        seeds: seeds a side; the largest simulated number that is not above it counts.
        confidence: level of the intervals.
        path: what benchmarks/coverage.py found.
    """
    rows = _simulated(seeds, confidence, path)
    if not rows:
        return ""
    return (
        f" In simulations with {rows[0]['seeds']} seeds a side such intervals held the true difference in "
        f"{_shares(rows, 'primary')} of the cases, where {level_text(confidence)} were meant "
        "(benchmarks/results/statistics of the workflow)."
    )


def simulated_coverage_of_both(
    seeds: int, confidence: float, path: Path = SIMULATIONS / "coverage.csv"
) -> str:
    """The same of intervals over seeds and test examples, beside those over seeds alone; recipes given."""
    rows = _simulated(seeds, confidence, path)
    if not rows:
        return ""
    return (
        f" In simulations with {rows[0]['seeds']} seeds a side and given recipes this kind held the true "
        f"difference in {_shares(rows, 'primary')} of the cases, the one over seeds alone in "
        f"{_shares(rows, 't')}, where {level_text(confidence)} were meant (benchmarks/results/statistics of "
        "the workflow)."
    )


def simulated_coverage_of_choice(
    seeds: int, confidence: float, path: Path = SIMULATIONS / "selection.csv"
) -> str:
    """The same of intervals that carry the choice of a recipe, beside those that take it as given."""
    rows = _simulated(seeds, confidence, path)
    if not rows:
        return ""
    return (
        f" In simulations of a choice among four recipes with {rows[0]['seeds']} seeds a side such intervals "
        f"held the true difference in {_shares(rows, 'primary')} of the cases, where "
        f"{level_text(confidence)} were meant, and those that take the chosen recipes as given in "
        f"{_shares(rows, 'fixed')} (benchmarks/results/statistics of the workflow)."
    )


def _simulated(seeds: int, confidence: float, path: Path) -> list[dict[str, str]]:
    """The simulations of the largest number of seeds that is not above this one."""
    with open(path, encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if int(row["seeds"]) <= seeds]
    if confidence != SIMULATED_LEVEL:
        return []
    most = max((int(row["seeds"]) for row in rows), default=0)
    return [row for row in rows if int(row["seeds"]) == most]


def _shares(rows: list[dict[str, str]], interval: str) -> str:
    """The lowest to the highest coverage of a kind of interval."""
    shares = [float(row[f"{interval}_coverage_percent"]) for row in rows]
    ends = dict.fromkeys(f"{share:.1f}%" for share in (min(shares), max(shares)))
    return " to ".join(ends)


def _run_limits(findings: Findings) -> list[str]:
    runs = findings.experiment.runs
    collapsed = sum(run["collapsed"] for run in runs)
    told = []
    if collapsed:
        told.append(
            f"{collapsed:,} of {count(len(runs), 'run')} collapsed on validation or test. They count in "
            "means, standard deviations and intervals, whose shape they make anything but normal."
        )
    known = {
        metric: [row["binomial_se"] for row in one.summary if row["binomial_se"] is not None]
        for metric, one in findings.experiment.by_metric.items()
    }
    for metric, errors in known.items():
        if errors:
            told.append(
                f"With these numbers of test examples a single {metric_name(metric)} has a binomial standard "
                f"error of {100 * min(errors):.1f} to {100 * max(errors):.1f} points, whatever the number of "
                "seeds."
            )
    if len(findings.reporting["grid"]["frameworks"]) > 1:
        told.append(
            "The frameworks still differ where the table of differences says so; a difference between them "
            "is one of these, of the order of examples, or chance, and is not told apart here."
        )
    return told
