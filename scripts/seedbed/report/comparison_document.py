"""A comparison of two experiments as a document: the answer in words, the differences, the settings."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seedbed.analysis.comparison import PLACE, Comparison
from seedbed.analysis.finished import Finished
from seedbed.analysis.table_rows import RunRow
from seedbed.analysis.verdicts import COLLAPSE, FEW_SEEDS, NOTHING_LEARNED, ONE_CLASS, UNLEARNED
from seedbed.analysis.verdicts import verdict as found_verdict
from seedbed.core.errors import SeedbedError
from seedbed.core.rows import Row
from seedbed.core.tasks import METRICS, Task
from seedbed.core.wording import Words
from seedbed.core.words import (
    code,
    level_text,
    unit_of,
    with_unit,
)
from seedbed.report.documents.blocks import Block, Cell, Details, Header, Heading, Paragraph, Table
from seedbed.report.documents.html import to_page
from seedbed.report.documents.markdown import to_markdown
from seedbed.report.method_comparisons import INITS
from seedbed.report.opening import Group, Line, Opening
from seedbed.report.parts import (
    MAX_ROWS,
    cell_word,
    fold,
    header,
    headers,
    heading,
    heading_text,
    interval_cell,
    interval_header,
    keep,
    literal,
    mean_cell,
    p_cell,
    points_cell,
)
from seedbed.report.sections_accuracy import opening_blocks
from seedbed.report.sections_contrasts import correlation_cell, direction
from seedbed.report.summary import facts_of
from seedbed.report.undecided import is_before_holm, of_side, rates_of_collapse

WORDS = Words("report/comparison")
FORMATS = (".md", ".html")
MAX_TOLD = 3  # settings that the opening names; more are counted
SHOWN = 4  # columns of numbers that everybody reads: both sides, their difference, its interval
# what is resampled together, by (the same seeds, the same examples)
_PAIRS = {(True, True): "seeds_and_examples", (False, True): "examples", (False, False): "nothing"}
# verdicts in the order in which they are counted
VERDICTS = (
    NOTHING_LEARNED, ONE_CLASS, "a", "b", "unclear", FEW_SEEDS, COLLAPSE, "none", "undefined",
)  # fmt: skip


@dataclass(frozen=True)
class Sides:
    """What is compared.

    Attributes:
        a, b: names of the experiments.
        metric: that is compared, and whether more of it is better.
        task: of both.
    """

    a: str
    b: str
    metric: str
    more_is_better: bool
    task: Task


def _sides(comparison: Comparison) -> Sides:
    better = _direction(comparison) > 0
    return Sides(comparison.a.name, comparison.b.name, comparison.metric, better, comparison.a.task)


def check_format(path: str | Path) -> None:
    """Refuse a file that a comparison cannot be written to.

    Raises:
        SeedbedError: its name ends in none of FORMATS.
    """
    if Path(path).suffix not in FORMATS:
        raise SeedbedError(
            "a comparison is written as Markdown or as HTML",
            where=str(path),
            hint=f"name a file that ends in {' or '.join(FORMATS)}",
        )


def render(comparison: Comparison, ending: str) -> str:
    """The comparison as Markdown (.md) or as one HTML page (.html)."""
    lead, differences = opening_blocks(opening(comparison)), difference_tables(comparison)
    rest = body(comparison, differences[1])
    if ending == ".html":
        return to_page(title(comparison), rest, {}, lead=lead, first=differences[:1])
    return to_markdown([Heading(title(comparison), 1), *lead, differences[0], *rest])


def title(comparison: Comparison) -> str:
    """What the document is about."""
    return heading_text("side_by_side", a=code(comparison.a.name), b=code(comparison.b.name))


def facts(comparison: Comparison) -> dict[str, Any]:
    """What the terminal shows: the opening and the table of differences, as `summary.facts_of` makes them."""
    table, _ = difference_tables(comparison)
    return facts_of(opening(comparison), table)


def opening(comparison: Comparison) -> Opening:
    """The answer, what differs beside it, and what to do next."""
    alone = len(comparison.only_a) + len(comparison.only_b)
    settings = list(dict.fromkeys((row["setting"], row["a"], row["b"]) for row in comparison.settings))
    lines = [
        Line("answer", answer(comparison)),
        Line("differs", WORDS.say("differs", settings[:MAX_TOLD], len(settings[MAX_TOLD:]), alone)),
        Line("next", WORDS.say("next", next_step(comparison), _level(comparison))),
    ]
    return Opening("", [Group("", lines)], [])


# verdicts in the order in which they ask for something, by what they ask for
STEPS = {
    NOTHING_LEARNED: "learn", ONE_CLASS: "learn", "undefined": "undefined", FEW_SEEDS: "few_seeds",
    "single": "few_seeds", COLLAPSE: "collapse", "flat": "flat", "unclear": "more",
}  # fmt: skip


def next_step(comparison: Comparison) -> str:
    """What to do next: what went wrong first, then what would decide, then what makes the cause known."""
    found = set(map(found_verdict, comparison.differences))
    for one, step in STEPS.items():
        if one in found:
            return step
    return "settings" if len({row["setting"] for row in comparison.settings}) > 1 else "settled"


def answer(comparison: Comparison) -> str:
    """Which experiment is better on test, by the metric that is compared, in how many comparisons."""
    if len(comparison.differences) == 1:
        return _single(comparison)
    told = []
    for selection in ("best", "equal"):
        rows = [row for row in comparison.differences if row["selection"] == selection]
        found = Counter(verdict(comparison, row) for row in rows)
        if rows:
            counts = {name: found[name] for name in VERDICTS if found[name]}
            told.append(WORDS.say("counts", counts, _sides(comparison), len(rows), selection == "best"))
    return " ".join([*told, WORDS.say("corrected", comparison.statistics["confidence"])])


def _single(comparison: Comparison) -> str:
    (row,) = comparison.differences
    found, best = verdict(comparison, row), row["selection"] == "best"
    ends = [
        None if row[f"{name}_low"] is None else (row[f"{name}_low"], row[f"{name}_high"])
        for name in ("ci", "given")
    ]
    return WORDS.say("single", found, _sides(comparison), best, row["delta"], *ends, _level(comparison))


def verdict(comparison: Comparison, row: Row) -> str:
    """a or b, the better one, where p after Holm's correction is below the level; unclear where not; none
    without an interval; undefined where a run of a side has no finite loss, so that there is no difference;
    one of WITHHELD where the difference bears no verdict."""
    found = found_verdict(row)
    if found in ("single", "flat"):
        return "none"
    if found not in ("higher", "lower"):
        return found
    return "a" if _direction(comparison) * row["delta"] > 0 else "b"


def _direction(comparison: Comparison) -> int:
    """+1 where more of the metric that is compared is better, -1 where less is."""
    return METRICS[comparison.metric].direction


def _level(comparison: Comparison) -> str:
    return level_text(comparison.statistics["confidence"])


def body(comparison: Comparison, evidence: Table) -> list[Block]:
    """Everything after the table of differences; `evidence`: the one of what they rest on."""
    blocks = _notes(comparison)
    grounds: list[Block] = [evidence]
    if comparison.gains:
        gains, more = gain_tables(comparison)
        blocks += [heading("gains"), gains]
        grounds.append(more)
    blocks += [heading("settings"), *_settings(comparison)]
    blocks.append(Details(heading_text("tests"), grounds))
    alone = _alone(comparison)
    return [*blocks, Details(heading_text("alone"), [alone])] if alone.rows else blocks


# --- differences --------------------------------------------------------------------------------------------


def difference_tables(comparison: Comparison) -> tuple[Table, Table]:
    """Both experiments on test and their difference, one row a match; and what the verdicts rest on."""
    places, shared = _places(comparison.differences, PLACE)
    names = comparison.a.name, comparison.b.name
    metric, unit = comparison.metric, unit_of(comparison.metric)
    columns: Header = [*_place_headers(places), *headers("compared", "recipe")]
    for name in names:
        mean, sd = (header("compared", part, name=name) for part in ("mean", "sd"))
        copied = with_unit(mean, unit.value), with_unit(sd, unit.difference)
        columns.append(Cell(with_unit(code(name), unit.value), copied=copied))
    optional = _optional(comparison.differences)
    columns += _difference_header(comparison, optional)
    withheld = any(row["no_verdict"] for row in comparison.differences)
    rows = [
        [
            *_place_cells(places, row),
            _recipes(row),
            mean_cell(row["mean_a"], row["sd_a"], metric),
            mean_cell(row["mean_b"], row["sd_b"], metric),
            points_cell(row["delta"], metric=metric),
            *_evidence(row, comparison, optional),
            *([row["no_verdict"]] if withheld else []),
        ]
        for row in comparison.differences
    ]
    columns += headers("compared", "no_verdict") * withheld
    own_best = any(row["selection"] != "equal" for row in comparison.differences)
    replicates = comparison.statistics["replicates"]
    paired = "seed_correlation" in optional
    sides = _sides(comparison)
    caption = WORDS.say("difference_caption", sides, direction(metric), shared, own_best)
    grounds = WORDS.say("evidence_caption", sides, replicates, own_best, paired)
    table = Table("differences", columns, rows, caption, right=_numbers(places, optional))
    return _apart(table, grounds, withheld)


def gain_tables(comparison: Comparison) -> tuple[Table, Table]:
    """Pretrained minus random in both experiments, and the difference of these gains; and what the verdicts
    rest on."""
    places, shared = _places(comparison.gains, PLACE[:-1])
    a, b, metric = code(comparison.a.name), code(comparison.b.name), comparison.metric
    unit = unit_of(metric).difference
    gains = (with_unit(header("compared", "gain", name=name), unit) for name in (a, b))
    optional = _optional(comparison.gains)
    columns: Header = [*_place_headers(places), *headers("compared", "recipe"), *gains]
    columns += _difference_header(comparison, optional)
    withheld = any(row["no_verdict"] for row in comparison.gains)
    rows = [
        [
            *_place_cells(places, row),
            _recipes(row),
            *(points_cell(row[key], metric=metric) for key in ("mean_a", "mean_b", "delta")),
            *_evidence(row, comparison, optional, of_gains=True),
            *([row["no_verdict"]] if withheld else []),
        ]
        for row in comparison.gains
    ]
    columns += headers("compared", "no_verdict") * withheld
    caption = WORDS.say("gain_caption", _sides(comparison), direction(metric), shared)
    table = Table("gains", columns, rows, caption, right=_numbers(places, optional))
    return _apart(table, WORDS.say("gain_evidence_caption"), withheld)


def _optional(rows: Sequence[Row]) -> list[str]:
    """The columns that only some differences have: the interval with the chosen recipes given, r of pairs."""
    return [key for key in ("given_low", "seed_correlation") if any(row[key] is not None for row in rows)]


def _difference_header(comparison: Comparison, optional: Sequence[str]) -> list[str | Cell]:
    unit = unit_of(comparison.metric).difference
    given = [interval_header(header("contrasts", "given"), unit)] if "given_low" in optional else []
    return [
        with_unit(header("compared", "difference"), unit),
        interval_header(header("compared", "interval", level=_level(comparison)), unit),
        *given,
        *headers("compared", "p_value", "p_holm"),
        *(headers("contrasts", "seed_correlation") if "seed_correlation" in optional else []),
        *headers("compared", "seeds", "pairs"),
    ]


def _apart(table: Table, caption: str, withheld: bool) -> tuple[Table, Table]:
    """The values, the difference and its interval of each match; and p, seeds and pairs, with a caption of
    their own. What is the same throughout goes into the captions.

    Args:
        table: with all columns, those of numbers on the right.
        caption: of the second table.
        withheld: whether the last column says why no verdict stands.
    """
    recipe, last = table.right[0] - 1, len(table.header) - 1
    names, numbers = list(range(recipe + 1)), list(range(recipe + 1, recipe + SHOWN + 1))
    others = list(range(recipe + SHOWN + 1, last + 1 - withheld))
    # the numbers before the long names of recipes, so that a narrow screen shows them
    shown = [*names[:-1], *numbers, recipe] if recipe else [*names, *numbers]
    values = keep(table, [*shown, *([last] if withheld else [])])
    evidence = keep(table, [*names, *others])
    evidence = replace(evidence, name=f"{table.name}_tested", caption=caption)
    ends = len(evidence.header) - 2, len(evidence.header) - 1
    return fold(values, (shown.index(recipe),)), fold(evidence, (recipe, *ends))


def _numbers(places: Sequence[str], optional: Sequence[str]) -> range:
    """The columns between the recipe and the seeds."""
    return range(len(places) + 1, len(places) + 7 + len(optional))


def _places(rows: Sequence[Row], columns: Sequence[str]) -> tuple[list[str], str]:
    """The columns of a place that differ between rows, and a sentence of those that do not."""
    values = {key: {row[key] for row in rows} for key in columns}
    shared = [(key, rows[0][key]) for key in columns if len(values[key]) == 1]
    return [key for key in columns if len(values[key]) > 1], WORDS.say("shared", shared)


def _place_headers(places: Sequence[str]) -> list[str]:
    return [header("first", "start") if key == "init" else header("compared", key) for key in places]


def _place_cells(places: Sequence[str], row: Row) -> list[str]:
    """What tells rows apart; where runs start in words."""
    return [INITS[row[key]] if key == "init" else code(row[key]) for key in places]


def _recipes(row: Row) -> str:
    a, b = code(row["recipe_a"]), code(row["recipe_b"])
    if row["selection"] == "best":
        return cell_word("own_best_both", recipe=a) if a == b else cell_word("own_best_apart", a=a, b=b)
    return a if a == b else cell_word("and", a=a, b=b)


def _evidence(
    row: Row, comparison: Comparison, optional: Sequence[str], *, of_gains: bool = False
) -> list[Any]:
    equal, metric = row["n_a"] == row["n_b"], comparison.metric
    given = interval_cell(row["given_low"], row["given_high"], metric, of_gains)
    return [
        interval_cell(row["ci_low"], row["ci_high"], metric, of_gains),
        *([given] if "given_low" in optional else []),
        p_cell(row["p_value"]),
        p_cell(row["p_holm"]),
        *([correlation_cell(row["seed_correlation"])] if "seed_correlation" in optional else []),
        str(row["n_a"]) if equal else cell_word("and", a=row["n_a"], b=row["n_b"]),
        cell_word(_PAIRS[row["paired"], row["same_examples"]]),
    ]


def _notes(comparison: Comparison) -> list[Block]:
    told = []
    rows = [*comparison.differences, *comparison.gains]
    if any(row["no_verdict"] for row in rows):
        told.append(WORDS.say("no_verdict"))
    if any(row["no_verdict"] in UNLEARNED for row in rows):
        told.append(WORDS.say("unlearned"))
    told += [text for row in comparison.differences for text in _of_runs(comparison, row)]
    by_position = [match for match in comparison.matches if not match.by_name]
    if by_position:
        pairs = list(dict.fromkeys((match.name_a, match.name_b) for match in by_position))
        told.append(WORDS.say("by_position", pairs))
    if not all(row["same_examples"] for row in comparison.differences):
        told.append(WORDS.say("other_examples"))
    before = sum(map(is_before_holm, rows))
    if before:
        told.append(WORDS.say("before_holm", before, len(rows)))
    if len(comparison.differences) > 1:
        told.append(WORDS.say("verdicts_differ"))
    return [Paragraph(text) for text in told]


def _of_runs(comparison: Comparison, row: Row) -> list[str]:
    """What a difference has to say of runs that learned nothing on one side, or that collapsed."""
    place = f"{', '.join(code(row[key]) for key in PLACE)}, {_recipes(row)}"
    told = []
    if row["no_verdict"] not in UNLEARNED:
        sides = {"a": comparison.a.name, "b": comparison.b.name}
        told += [
            WORDS.say("unlearned_side", name, place)
            for side, name in sides.items()
            if row[f"learned_nothing_{side}"]
        ]
    if row["delta_without_collapsed"] is not None:
        runs = {of_side(code(side.name)): _runs(side, row, name) for name, side in _named(comparison)}
        rates = rates_of_collapse(comparison.a.task, runs, comparison.statistics["confidence"])
        low, high = row["ci_low_without_collapsed"], row["ci_high_without_collapsed"]
        ends = None if low is None else (low, high)
        delta = row["delta_without_collapsed"]
        told.append(WORDS.say("without_collapsed", delta, ends, comparison.metric, place, rates))
    return told


def _named(comparison: Comparison) -> list[tuple[str, Finished]]:
    return [("a", comparison.a), ("b", comparison.b)]


def _runs(side: Finished, row: Row, name: str) -> list[RunRow]:
    """The runs of side `a` or `b` of a difference."""
    return [
        run
        for run in side.runs
        if run.recipe == row[f"recipe_{name}"] and all(run[key] == row[key] for key in PLACE)
    ]


# --- settings, and what has no answer -----------------------------------------------------------------------


def _settings(comparison: Comparison) -> list[Block]:
    if not comparison.settings:
        return [Paragraph(WORDS.say("no_settings"))]
    rows = [
        [literal(row["where"]), *(code(row[key]) for key in ("setting", "a", "b"))]
        for row in comparison.settings
    ]
    names = code(comparison.a.name), code(comparison.b.name)
    columns = [*headers("compared", "where", "setting"), *names]
    return [_capped("settings", columns, rows, WORDS.say("settings_caption"))]


def _alone(comparison: Comparison) -> Table:
    sides = ((comparison.a, comparison.only_a), (comparison.b, comparison.only_b))
    rows = [[code(results.name), *map(code, cell)] for results, cells in sides for cell in cells]
    columns = headers("compared", "experiment", *PLACE, "recipe")
    return _capped("only_one", columns, rows, WORDS.say("alone_caption"))


def _capped(name: str, header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> Table:
    left_out = len(rows) - MAX_ROWS
    if left_out > 0:
        caption = f"{caption} {WORDS.say('rows_left_out', left_out)}"
    return Table(name, header, rows[:MAX_ROWS], caption)
