"""Sections of summary and report: differences with intervals and tests, equivalence, pairs of runs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seedbed.analysis import statistics
from seedbed.analysis.contrasts import SYSTEM
from seedbed.analysis.differences import OF_GAINS
from seedbed.analysis.experiment import Experiment
from seedbed.analysis.methods import is_over_means, unit_text
from seedbed.analysis.verdicts import UNLEARNED, equivalence_word, is_withheld, verdict
from seedbed.core import wording
from seedbed.core.rows import Row, grouped
from seedbed.core.tasks import Task
from seedbed.core.wording import Words
from seedbed.core.words import (
    better,
    framework_name,
    join,
    recipe_text,
    unit_of,
    with_unit,
)
from seedbed.report.documents.blocks import Block, Cell, Header, Heading, Paragraph, Table
from seedbed.report.experiment import (
    equivalence_interval,
    equivalence_level,
    narrower_than_over_seeds,
)
from seedbed.report.parts import (
    PLACE,
    capped,
    cell_word,
    figures,
    header,
    headers,
    heading,
    interval_cell,
    interval_header,
    literal,
    number_cell,
    p_cell,
    part_cell,
    percent_cell,
    points_cell,
    size_cell,
    with_places,
)
from seedbed.report.sources import Sources

WORDS = Words("report/contrasts")
FAMILIES = wording.data("report/titles")["families"]
PLACES = {
    "dataset": ("model",),
    "model": ("dataset",),
    SYSTEM: ("dataset",),
}  # where the contrast names both of the others
SIDES = wording.data("report/titles")["sides"]
# columns of `subject`, by family of contrasts
SUBJECTS = {
    "init": ["framework"],
    "framework": ["init"],
    "dataset": ["framework", "contrast"],
    "recipe": ["framework"],
    SYSTEM: ["contrast"],
}


def difference_section(experiment: Experiment, sources: Sources, *, full: bool = False) -> list[Block]:
    """The contrasts, family by family; `full` adds where each error comes from and the other measures."""
    families = dict.fromkeys(row["family"] for row in experiment.contrasts)
    if not families:
        return []
    several = len(experiment.by_metric) > 1
    scored = WORDS.say("scores") if several else experiment.scored
    note = WORDS.say("note", notes(experiment))
    blocks: list[Block] = [heading("differences", scored=scored), Paragraph(note)]
    for family in families:
        blocks.append(Heading(FAMILIES[family], 3))
        for one in experiment.by_metric.values():
            rows = _best_first([row for row in one.contrasts if row["family"] == family])
            if not rows:
                continue
            ending = f"_{one.metric}" * several
            table = contrast_table(one, family, rows, ending)
            blocks += capped(table, "differences", "contrasts.csv")
            if full:
                table = error_table(one, family, rows, ending)
                blocks += capped(table, "differences", "contrasts.csv")
    if full:
        blocks.append(error_note(experiment))
    return [*blocks, *figures(experiment, sources, "differences")]


def _best_first(rows: Sequence[Row]) -> list[Row]:
    """Where a table is cut, the contrasts that the answer rests on stay."""
    return sorted(rows, key=lambda row: row["selection"] != "best")


def contrast_table(experiment: Experiment, family: str, rows: Sequence[Row], ending: str = "") -> Table:
    """The differences of a family with intervals and tests; `ending` tells tables of one family apart."""
    metric, of_gains = experiment.metric, family in OF_GAINS
    unit = unit_of(metric).difference
    named = [*subject_and_recipe_header(family), header("contrasts", "seeds")]
    difference, reduction, given, over_seeds, p_value, p_holm, correlation, no_verdict = headers(
        "contrasts", "difference", "error_reduction", "given", "over_seeds", "p_value", "p_holm",
        "seed_correlation", "no_verdict",
    )  # fmt: skip

    def ends(name: str) -> Callable[[Row], Cell | None]:
        return lambda row: interval_cell(row[f"{name}_low"], row[f"{name}_high"], metric, of_gains)

    columns: list[tuple[str | Cell, str, Callable[[Row], Any]]] = [
        (with_unit(difference, unit), "", lambda row: points_cell(row["delta"], metric=metric)),
        (interval_header(experiment.level, unit), "ci_low" if family == SYSTEM else "", ends("ci")),
        (interval_header(given, unit), "given_low", ends("given")),
        (interval_header(over_seeds, unit), "", ends("t")),
        (p_value, "", lambda row: p_cell(row["p_value"])),
        (p_holm, "", lambda row: p_cell(row["p_holm"])),
        (reduction, "error_reduction", lambda row: points_cell(row["error_reduction"])),
        (correlation, "seed_correlation", lambda row: correlation_cell(row["seed_correlation"])),
        (no_verdict, "no_verdict", lambda row: verdict(row) if is_withheld(row) else None),
    ]
    # a column that some differences have alone is left out where none has it
    shown = [column for column in columns if not column[1] or any(row[column[1]] is not None for row in rows)]

    def line(row: Row) -> list[Any]:
        told = [*subject_and_recipe(experiment.reporting["recipes"], row), seeds_text(row)]
        return [*told, *(cell(row) for _, _, cell in shown)]

    caption = WORDS.say("caption", FAMILIES[family], experiment.scored, unit, direction(metric))
    return with_places(
        rows,
        f"contrasts_{family}{ending}",
        [*named, *(name for name, _, _ in shown)],
        line,
        caption=caption,
        named=len(named),
        places=PLACES.get(family, PLACE),
    )


def error_note(experiment: Experiment) -> Paragraph:
    """How tables of errors are read."""
    return Paragraph(WORDS.say("error_note", experiment.confidence))


def correlation_cell(correlation: float | None) -> Cell | None:
    """A correlation with its sign."""
    return None if correlation is None else Cell(f"{correlation:+.2f}".replace("-", "−"), correlation)


def direction(metric: str) -> str:
    """In which direction a metric is the better, for brackets; of accuracies everybody knows."""
    return "" if metric == "accuracy" else f" ({better(metric)})"


def error_table(experiment: Experiment, family: str, rows: Sequence[Row], ending: str = "") -> Table:
    """Where the error of each comes from, and other measures."""
    metric = experiment.metric
    unit = unit_of(metric).difference
    named = subject_and_recipe_header(family)
    parts = headers("errors", "standard_error", "of_seeds", "of_examples")
    paired = any(row["pairing_ratio"] is not None for row in rows)
    exact = any(can_be_exact(experiment, row) for row in rows)
    names: Header = [*named, *(with_unit(part, unit) for part in parts)]
    names.append(interval_header(header("errors", "percentile"), unit))
    names += headers("errors", "pairing_ratio") if paired else []
    names += headers("errors", "p_exact") if exact else []
    names += headers("errors", "improvement", "aso")

    def line(row: Row) -> list[Any]:
        return [
            *subject_and_recipe(experiment.reporting["recipes"], row),
            size_cell(row["standard_error"], 2, metric),
            *(part_cell(row[key], metric) for key in ("se_seeds", "se_examples")),
            interval_cell(row["bootstrap_low"], row["bootstrap_high"], metric, of_gains=family in OF_GAINS),
            *([number_cell(row["pairing_ratio"], 2)] if paired else []),
            *([p_cell(row["p_exact"]) if can_be_exact(experiment, row) else None] if exact else []),
            number_cell(row["probability_of_improvement"], 2),
            number_cell(row["aso_eps_min"], 2),
        ]

    scored = experiment.scored if ending else ""
    units = dict.fromkeys(unit_text(row) for row in rows if can_be_exact(experiment, row))
    caption = WORDS.say("error_caption", FAMILIES[family], scored, units)
    return with_places(
        rows,
        f"errors_{family}{ending}",
        names,
        line,
        caption=caption,
        named=len(named),
        places=PLACES.get(family, PLACE),
    )


def can_be_exact(experiment: Experiment, row: Row) -> bool:
    """Whether an exact test over a contrast's seeds can give a p below the level."""
    if row["p_exact"] is None:
        return False
    sizes = (row["test_means"],) * 2 if is_over_means(row) else (row["n_a"], row["n_b"])
    return statistics.smallest_p(*sizes, paired=row["paired"]) < 1 - experiment.confidence


def subject_and_recipe_header(family: str) -> list[str]:
    """Headers of `subject_and_recipe`, by family."""
    return [*subject_header(family), *([] if family == SYSTEM else [header("contrasts", "recipe")])]


def subject_and_recipe(recipes: Mapping[str, Mapping[str, Any]], row: Row) -> list[str]:
    """What a contrast is about, with its recipe; systems from outside have none."""
    return [*subject(row), *([] if row["family"] == SYSTEM else [contrast_recipe(recipes, row)])]


def subject_header(family: str) -> list[str]:
    """Headers of `subject`, by family."""
    return headers("contrasts", *SUBJECTS.get(family, ["framework", "init", "contrast"]))


def subject(row: Row) -> list[str]:
    """What a contrast is about, beside the place and the recipe."""
    if row["family"] == SYSTEM:
        return [f"{literal(row['recipe_a'])} − {literal(row['recipe_b'])}"]
    framework, init = row["a"].split("/")
    if row["family"] == "framework":
        return [init]
    if row["family"] in ("init", "recipe"):
        return [framework_name(framework)]
    contrast = row["contrast"].replace(" - ", " − ")
    names = [framework_name(framework)] if row["family"] == "dataset" else [framework_name(framework), init]
    return [*names, contrast]


def contrast_recipe(recipes: Mapping[str, Mapping[str, Any]], row: Row) -> str:
    """The recipe of both sides, or what each has as its own best on validation: a / b.

    Args:
        recipes: `Plan.reporting()["recipes"]`.
        row: of contrasts.csv or pairs.csv; of a gain the recipe names that of each init, PRETRAINED/RANDOM.
    """
    a, b = (
        join([recipe_text(recipes, name) for name in row[side].split("/")])
        for side in ("recipe_a", "recipe_b")
    )
    if row["selection"] == "equal":
        return a if row["family"] != "method" else f"{a} / {b}"
    if row["family"] == "recipe":
        return cell_word("own_best_against", a=a, b=b)
    return cell_word("own_best_of_both", recipe=a) if a == b else cell_word("own_best_of_each", a=a, b=b)


def seeds_text(row: Row) -> str:
    """The seeds of both sides, and whether they are pairs."""
    if row["paired"]:
        return cell_word("pairs" if row["n_a"] > 1 else "one_pair", number=row["n_a"])
    return cell_word("unpaired", a=row["n_a"], b=row["n_b"])


@dataclass(frozen=True)
class Notes:
    """What the note on the table of differences has to explain.

    Attributes:
        replicates: of the Multi-Bootstrap.
        intervals: whether any difference has an interval over seeds and test examples.
        several_metrics: whether the task reports more than one.
        of_classes: whether they are of classes, not of answers.
        gains: whether gains are compared, whose difference may be 200 points.
        crossed: whether init seeds and data seeds are crossed.
        differences, narrower: how many there are, and how many have an interval that is narrower than the one
            over seeds alone.
        paired: whether any difference is of paired seeds whose correlation is known.
        withheld: whether any difference bears no verdict.
        own_best: whether sides are compared at their own best recipes.
    """

    replicates: int
    intervals: bool
    several_metrics: bool
    task: Task
    gains: bool
    crossed: bool
    differences: int
    narrower: int
    paired: bool
    withheld: bool
    own_best: bool


def notes(experiment: Experiment) -> Notes:
    """What the note on an experiment's table of differences has to explain."""
    rows = experiment.contrasts
    return Notes(
        replicates=experiment.reporting["statistics"]["replicates"],
        intervals=any(row["standard_error"] is not None for row in rows),
        several_metrics=len(experiment.by_metric) > 1,
        task=experiment.task,
        gains=any(row["family"] in OF_GAINS for row in rows),
        crossed=any(map(is_over_means, rows)),
        differences=len(rows),
        narrower=sum(map(narrower_than_over_seeds, rows)),
        paired=any(row["seed_correlation"] is not None for row in rows),
        withheld=any(map(is_withheld, rows)),
        own_best=any(row["selection"] == "best" for row in rows),
    )


# --- equivalence --------------------------------------------------------------------------------------------


def equivalence_section(experiment: Experiment) -> list[Block]:
    """Whether the frameworks are the same within the margin; left out where there is one framework."""
    rows = _best_first([row for row in experiment.contrasts if row["family"] == "framework"])
    if not rows:
        return []
    interval, metric = equivalence_level(experiment), experiment.metric
    of_test = header("equivalence", "of_test", level=interval)
    unit = unit_of(metric).difference
    difference, margin = headers("equivalence", "difference", "margin")
    names: Header = [*headers("equivalence", "init", "recipe")]
    names += [with_unit(difference, unit), with_unit(margin, unit)]
    names.append(interval_header(of_test, unit))
    names += headers("equivalence", "p_equivalence", "p_holm", "verdict")

    def line(row: Row) -> list[Any]:
        bounds = equivalence_interval(row)
        return [
            *subject(row),
            contrast_recipe(experiment.reporting["recipes"], row),
            points_cell(row["delta"], metric=metric),
            margin_cell(row["margin"], metric),
            None if bounds is None else interval_cell(bounds.low, bounds.high, metric),
            p_cell(row["p_equivalence"]),
            p_cell(row["p_equivalence_holm"]),
            equivalence_word(row),
        ]

    counts = Counter(equivalence_word(row) or cell_word("not_tested") for row in rows)
    note = WORDS.say("equivalence_note", counts, len(rows), experiment.confidence, interval, experiment.level)
    caption = WORDS.say("equivalence_caption", experiment.scored, unit)
    table = with_places(rows, "equivalence", names, line, caption=caption, named=2)
    return [
        heading("equivalence"),
        Paragraph(note),
        *capped(table, "comparisons", "contrasts.csv"),
    ]


def margin_cell(margin: float | None, metric: str) -> Cell | None:
    """The margin of equivalence in the unit of differences of a metric."""
    if margin is None:
        return None
    value = unit_of(metric).factor * margin
    return Cell(f"±{value:.4g}", value)


# --- pairs of runs ------------------------------------------------------------------------------------------


def pair_section(experiment: Experiment) -> list[Block]:
    """McNemar's tests of pairs of runs, counted by comparison; left out where there is no pair."""
    pairs = experiment.tables["pairs"]
    keys = ("family", *PLACE, "model_b", "contrast", "a", "b", "recipe_a", "recipe_b", "selection")
    families: dict[str, list[list[Row]]] = {}
    for group in grouped(_best_first(pairs), *keys).values():
        families.setdefault(group[0]["family"], []).append(group)
    if not families:
        return []
    note = WORDS.say("pairs_note", experiment.task.writes_answers)
    blocks: list[Block] = [heading("pairs"), Paragraph(note)]
    for family, groups in families.items():
        table = _pair_table(experiment, family, groups)
        blocks += capped(table, "comparisons", "pairs.csv")
    return blocks


def _pair_table(experiment: Experiment, family: str, groups: Sequence[Sequence[Row]]) -> Table:
    level = 1 - experiment.confidence
    sides = SIDES.get(family, [cell_word("first_side"), cell_word("second_side")])
    named = [*subject_and_recipe_header(family), header("pairs", "pairs")]
    wins = (header("pairs", column, side=side) for column in ("only", "better") for side in sides)
    recipes = experiment.reporting["recipes"]
    same = ("family", *PLACE, "model_b", "a", "b", "recipe_a", "recipe_b", "selection")
    unlearned = {
        tuple(row[key] for key in same)
        for one in experiment.by_metric.values()
        for row in one.contrasts
        if verdict(row) in UNLEARNED
    }
    lines = {}
    for group in groups:
        line = pair_line(recipes, group, level)
        # of two models that learned nothing, neither is the better one
        nothing = tuple(group[0][key] for key in same) in unlearned
        lines[id(group[0])] = [*line[:-2], None, None] if nothing else line
    caption = WORDS.say("pairs_caption", FAMILIES[family], level)
    firsts = [group[0] for group in groups]
    return with_places(
        firsts,
        f"pairs_{family}",
        [*named, *wins],
        lambda row: lines[id(row)],
        caption=caption,
        named=len(named),
        places=PLACES.get(family, PLACE),
    )


def pair_line(recipes: Mapping[str, Mapping[str, Any]], pairs: Sequence[Row], level: float) -> list[Any]:
    """The cells of a comparison: what each side alone gets right, and how many pairs each wins.

    Args:
        recipes: `Plan.reporting()["recipes"]`.
        pairs: rows of pairs.csv of one comparison.
        level: of McNemar's tests after Holm's correction.
    """
    first = pairs[0]
    shares = {
        key: statistics.mean([pair[key] / pair["examples"] for pair in pairs])
        for key in ("only_a_right", "only_b_right")
    }
    decided = [pair for pair in pairs if pair["p_holm"] < level]
    a_better = sum(pair["only_a_right"] > pair["only_b_right"] for pair in decided)
    return [
        *subject_and_recipe(recipes, first),
        len(pairs),
        *(percent_cell(share) for share in shares.values()),
        *(
            Cell(cell_word("counted_of", number=wins, all=len(pairs)), wins)
            for wins in (a_better, len(decided) - a_better)
        ),
    ]
