"""What the numbers of an experiment do not show: from the tables, worded by templates/limits.j2."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from seedbed.analysis.experiment import Experiment
from seedbed.core.known import known
from seedbed.core.tasks import Task
from seedbed.core.wording import Words
from seedbed.data.audit import CLUSTERS, duplicate_check
from seedbed.report.parts import MAX_LISTED
from seedbed.report.sources import Sources

WORDS = Words("report/limits")
# checks of the audit that find test examples whose text an earlier one has
REPEATED = [duplicate_check("test", "test", kind) for kind in ("exact", "near")]
# Fewer clusters than these make intervals too narrow, as their variance counts as well known: where they hold
# all of it, 20 cover 93.5% of a nominal 95%, 10 cover 92% and 5 cover 88% (Student's t within 1.96).
FEW_CLUSTERS = 20
SIMULATIONS = Path(__file__).parent / "coverage"  # what benchmarks/coverage.py found, as a copy
SIMULATED_LEVEL = 0.95  # of the intervals whose coverage was simulated
SIMULATED_LOOKS = (3, 5, 10, 17, 25)  # of sequential.csv
COLLAPSES = "collapses"  # the simulated world in which runs of one side collapse
# tables of coverage, and the intervals that each compares with the primary one: over seeds alone; or with the
# chosen recipes given
OTHERS = {"coverage": "t", "crossed": "", "selection": "fixed"}

Bounds = tuple[float, float]
T = TypeVar("T")


@dataclass(frozen=True)
class Coverage:
    """How often intervals held the true difference in simulations: lowest and highest shares, in per cent.

    Attributes:
        seeds: seeds a side; of crossed ones the levels of the factor with fewer.
        confidence: level of the intervals, a fraction.
        primary: of intervals over seeds and test examples.
        other: of the kind of interval that they are compared with; None where there is none.
        collapses: of the first, where runs of one side collapse at random; None where that was not simulated.
    """

    seeds: int
    confidence: float
    primary: Bounds
    other: Bounds | None = None
    collapses: Bounds | None = None


@dataclass(frozen=True)
class Clusters:
    """The clusters of a dataset's test examples, which intervals resample whole.

    Attributes:
        column: of the dataset, that names them.
        number: how many there are.
    """

    column: str
    number: int

    @property
    def few(self) -> bool:
        """Whether they are too few for an interval of the right width."""
        return self.number < FEW_CLUSTERS


@dataclass(frozen=True)
class Limits:
    """What limits the numbers of an experiment. Mappings are by dataset, unless they say otherwise.

    Attributes:
        task: what the runs were trained for.
        test_sizes, validation_sizes: examples of the splits.
        leaked: leaked test examples, of datasets that have any.
        repeated: test examples whose text an earlier one has, of datasets that have any, and no clusters.
        clusters: of test examples, of datasets that have any.
        compared_nearly: whether near-duplicates were looked for, too.
        pretrained: models with pretrained runs.
        recipes, swept: how many recipes there are, and whether any are of a sweep.
        own_best: whether sides are compared at their own best recipes.
        differences: contrasts that have a difference.
        without_interval: those of them without an interval over seeds and test examples.
        fewest_seeds: fewest independent seeds a side behind an interval; 0 without any.
        coverage, coverage_of_choice: of simulations like these; None where there are none.
        planned: numbers of seeds of the looks at an experiment that grows; else none.
        ranges: whether values were added to sweeps until the best one lay inside.
        looks: how often, in per cent, equal sides were told apart in simulations that added seeds until a
            difference was decided: by these looks, or without a plan; None where there are none.
        confidence: level of the intervals, a fraction.
        runs, collapsed: how many there are.
        sampling_errors: by metric the smallest and the largest binomial standard error, as fractions.
        several_frameworks: whether there is more than one.
        methods: of the recipes.
        devices: that the runs were made on.
    """

    task: Task
    test_sizes: Mapping[str, int]
    validation_sizes: Mapping[str, int]
    leaked: Mapping[str, int]
    repeated: Mapping[str, int]
    clusters: Mapping[str, Clusters]
    compared_nearly: bool
    pretrained: list[str]
    recipes: int
    swept: bool
    own_best: bool
    differences: int
    without_interval: int
    fewest_seeds: int
    coverage: Coverage | None
    coverage_of_choice: Coverage | None
    planned: Sequence[int]
    ranges: bool
    looks: Bounds | None
    confidence: float
    runs: int
    collapsed: int
    sampling_errors: Mapping[str, Bounds]
    several_frameworks: bool
    methods: set[str]
    devices: list[str]


def limits(experiment: Experiment, sources: Sources) -> list[str]:
    """What the numbers of this experiment do not show, a text for each limit."""
    return WORDS.items("limits", find(experiment, sources))


def find(experiment: Experiment, sources: Sources) -> Limits:
    """What limits the numbers of this experiment."""
    grid = experiment.reporting["grid"]
    runs, level = experiment.runs, experiment.confidence
    firsts = {run.dataset: run for run in runs}
    rows = [row for row in experiment.contrasts if row["delta"] is not None]
    clusters = _clusters(experiment, sources)
    repeated = {name: number for name, number in _repeated(sources).items() if name not in clusters}
    seeds, seeds_of_best = _fewest_seeds(experiment), _fewest_seeds(experiment, "best")
    crossed = bool(experiment.tables["variance"])
    planned = experiment.reporting.get("until", {}).get("looks", [])
    return Limits(
        task=experiment.task,
        test_sizes=_first({name: known(run.test_examples) for name, run in firsts.items()}),
        validation_sizes=_first(_validation_sizes(sources)),
        leaked=_first(_positive({name: run.leaked_test_examples for name, run in firsts.items()})),
        repeated=_first(repeated),
        clusters=_first(clusters),
        compared_nearly=any(
            block.get("near_duplicates", True) is not None
            for block in experiment.reporting["datasets"].values()
        ),
        pretrained=grid["models"][:MAX_LISTED] if "pretrained" in grid["inits"] else [],
        recipes=len(grid["recipes"]),
        swept=any(block["swept"] for block in experiment.reporting["recipes"].values()),
        own_best=any(row["selection"] == "best" for row in experiment.contrasts),
        differences=len(rows),
        without_interval=sum(row["ci_low"] is None for row in rows),
        fewest_seeds=seeds,
        coverage=simulated(seeds, level, "crossed" if crossed else "coverage"),
        coverage_of_choice=simulated(seeds_of_best, level, "selection"),
        planned=planned,
        ranges=bool(experiment.reporting.get("ranges")),
        looks=told_apart(level, planned),
        confidence=level,
        runs=len(runs),
        collapsed=sum(bool(run.collapsed) for run in runs),
        sampling_errors=_sampling_errors(experiment),
        several_frameworks=len(experiment.frameworks) > 1,
        methods={row.method for row in experiment.summary},
        devices=list(dict.fromkeys(run.device for run in runs)),
    )


def _first(counts: Mapping[str, T]) -> dict[str, T]:
    """As many as are listed."""
    return dict(list(counts.items())[:MAX_LISTED])


def _positive(counts: Mapping[str, int | None]) -> dict[str, int]:
    return {name: number for name, number in counts.items() if number}


def _validation_sizes(sources: Sources) -> dict[str, int]:
    return {
        row["dataset"]: row["count"]
        for row in sources.audit
        if (row["split"], row["check"]) == ("validation", "examples")
    }


def _repeated(sources: Sources) -> dict[str, int]:
    """Test examples whose text another test example has, too: they are no independent ones."""
    counts: dict[str, int] = {}
    for row in sources.audit:
        if row["split"] == "test" and row["check"] in REPEATED:
            counts[row["dataset"]] = counts.get(row["dataset"], 0) + row["count"]
    return _positive(counts)


def _clusters(experiment: Experiment, sources: Sources) -> dict[str, Clusters]:
    blocks = experiment.reporting["datasets"]
    columns = {name: block.get("columns", {}).get("cluster") for name, block in blocks.items()}
    return {
        row["dataset"]: Clusters(columns[row["dataset"]], row["count"])
        for row in sources.audit
        if (row["split"], row["check"]) == ("test", CLUSTERS) and columns.get(row["dataset"])
    }


def _sampling_errors(experiment: Experiment) -> dict[str, Bounds]:
    known = {
        metric: [row.binomial_se for row in one.summary if row.binomial_se is not None]
        for metric, one in experiment.by_metric.items()
    }
    return {metric: (min(errors), max(errors)) for metric, errors in known.items() if errors}


def _fewest_seeds(experiment: Experiment, selection: str | None = None) -> int:
    """The fewest independent seeds a side behind an interval; 0 where there is none."""
    return min(
        (
            row["test_means"] or min(row["n_a"], row["n_b"])
            for row in experiment.contrasts
            if row["ci_low"] is not None and selection in (None, row["selection"])
        ),
        default=0,
    )


def simulated(seeds: int, confidence: float, study: str, folder: Path = SIMULATIONS) -> Coverage | None:
    """How often intervals held the true difference in simulations of so many seeds.

    Args:
        seeds: seeds a side; the largest simulated number that is not above it counts.
        confidence: level of the intervals.
        study: a table of benchmarks/coverage.py, one of OTHERS.
        folder: where it lies.

    Returns:
        None where that level or so few seeds were not simulated.
    """
    rows = [row for row in _rows(folder / f"{study}.csv") if _seeds(row) <= seeds]
    if confidence != SIMULATED_LEVEL or not rows:
        return None
    most = max(map(_seeds, rows))
    rows = [row for row in rows if _seeds(row) == most]
    collapses = [row for row in rows if row.get("world") == COLLAPSES]
    others, other = [row for row in rows if row not in collapses], OTHERS[study]
    return Coverage(
        seeds=most,
        confidence=confidence,
        primary=_bounds(others, "primary_coverage_percent"),
        other=_bounds(others, f"{other}_coverage_percent") if other else None,
        collapses=_bounds(collapses, "primary_coverage_percent") if collapses else None,
    )


def told_apart(confidence: float, planned: Sequence[int] = (), folder: Path = SIMULATIONS) -> Bounds | None:
    """How often, in per cent, equal sides were told apart in simulations with looks, be they planned or not;
    None where that level, or these looks, were not simulated."""
    if confidence != SIMULATED_LEVEL or (planned and tuple(planned) != SIMULATED_LOOKS):
        return None
    if not planned:
        rows = _rows(folder / "looks.csv")
        return _bounds(rows, "ever_percent") if rows else None
    rows = [row for row in _rows(folder / "sequential.csv") if float(row["difference"]) == 0]
    return _bounds(rows, "apart_percent") if rows else None


def _rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table; none where that was not simulated."""
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _seeds(row: dict[str, str]) -> int:
    if "init_seeds" in row:
        return min(int(row["init_seeds"]), int(row["data_seeds"]))
    return int(row["seeds"])


def _bounds(rows: list[dict[str, str]], column: str) -> Bounds:
    shares = [float(row[column]) for row in rows]
    return min(shares), max(shares)
