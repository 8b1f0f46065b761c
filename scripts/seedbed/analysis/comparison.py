"""Two finished experiments side by side: which of their runs answer to each other, and how these differ.

Only the folders of the experiments are read: the table of runs, and each run's predictions and settings.
Groups of seeds answer to each other where dataset, model, framework and init have the same names in both, and
their recipes, too; where each side has one recipe, these two do, whatever their names. Families of recipes
answer to each other by the same rule. Of a family that has several recipes on a side, each side's best on
validation are compared, so that two sweeps need no recipe in common.
"""

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from seedbed.analysis import statistics, verdicts
from seedbed.analysis.bootstrap import Candidate, Estimate, Side, choice, compare_best
from seedbed.analysis.differences import Compared, How, estimate_without_collapsed, with_holm, with_verdict
from seedbed.analysis.experiment import INITS
from seedbed.analysis.finished import (
    Finished,
    Group,
    check_finished,
    read_finished,
    read_group,
)
from seedbed.analysis.records import trained_together
from seedbed.analysis.sides import (
    ExactTest,
    SideMaker,
    adjusted,
    exact_test,
    gain_candidates,
    named_seed,
    pairing,
)
from seedbed.analysis.spread import CREDIT
from seedbed.analysis.table_rows import RunRow
from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.core.rows import Row, grouped
from seedbed.core.seeds import independent_seeds
from seedbed.core.statistics_settings import complete_settings
from seedbed.core.words import metric_name

PLACE = ("dataset", "model", "framework", "init")
# facts of a run's hardware: which of several equal GPUs it had, and who else was there
OF_CHANCE = ("gpu_id", "processes_on_gpu", "mps")
NAMED = PLACE[:2]  # what experiments may have under different names
# Candidates whose resampled means are kept for further differences; beyond it they are made anew.
MAX_KEPT = 128

# of the inputs of a run, those that its own splits and settings do not tell, in words
TRAINED_ON = {
    "tokens/train": "tokens of the training texts (SHA-256)",
    "weights/model.pt": "weights of the checkpoint (SHA-256)",
    "weights/model.safetensors": "weights of the checkpoint (SHA-256)",
}
Key = tuple[str, ...]


@dataclass(frozen=True)
class Match:
    """What answers to each other: groups of seeds in one place, or families of recipes to choose from.

    Attributes:
        place: dataset, model, framework and init.
        selection: equal for one recipe a side; best for families, of which each side's best counts.
        name_a, name_b: of the recipes, or of the families.
        recipes_a, recipes_b: those to choose from, one a side where selection is equal.
    """

    place: Key
    selection: str
    name_a: str
    name_b: str
    recipes_a: tuple[str, ...]
    recipes_b: tuple[str, ...]

    @property
    def by_name(self) -> bool:
        """Whether both have the same name; else each is the only one of its side."""
        return self.name_a == self.name_b


@dataclass(frozen=True)
class Comparison:
    """What there is to say of two experiments.

    Attributes:
        a, b: the experiments, of one task; differences are a minus b.
        statistics: as in the config, complete.
        matches: what answers to each other, families to choose from first.
        differences: rows of `metric` on test, one a match. Where a run of a side has no finite loss, mean, sd
            and difference of that side are None, and so are intervals and test; `undefined_a` and
            `undefined_b` count these runs. `no_verdict` and the columns without collapsed runs are those of
            contrasts.csv; `learned_nothing_a` and `learned_nothing_b` say whether a side has no run that
            learned the task.
        gains: rows of what pretraining gains in `metric`, one for each match whose inits are both there.
        settings: what was set, installed or present on one side and not on the other.
        only_a, only_b: groups of seeds (CELL) in no match.
    """

    a: Finished
    b: Finished
    statistics: Mapping[str, Any]
    matches: list[Match]
    differences: list[Compared]
    gains: list[Compared]
    settings: list[Row]
    only_a: list[Key]
    only_b: list[Key]

    @property
    def metric(self) -> str:
        """Name of the metric that is compared: the first that the task reports."""
        return self.a.metric


def compare_experiments(
    a: str | Path,
    b: str | Path,
    settings: Mapping[str, Any],
    same: Mapping[str, str] = MappingProxyType({}),
    given: tuple[str | Path, str | Path] | None = None,
) -> Comparison:
    """Compare the experiments in two folders, such as results/x and results/y.

    Args:
        a, b: the folders; differences are a minus b.
        settings: see `complete_settings`.
        same: datasets and models that have other names in b, by the names that they have in a.
        given: see `read_experiments`.

    Raises:
        SeedbedError: a folder that holds no finished experiment, one folder twice, two tasks, nothing that
            answers to each other, classes that differ, runs whose files do not fit together, settings out of
            bounds; a name of `same` that an experiment does not have.
    """
    settings = complete_settings(settings)
    results_a, results_b = read_experiments(a, b, settings, given)
    results_b = _renamed(results_a, results_b, same)
    matches = find_matches(results_a, results_b)
    if not matches:
        raise _nothing_in_common(results_a, results_b)
    groups = _Groups(results_a, results_b)
    tests = _Tests(groups, settings)
    differences = [tests.difference(match) for match in matches]
    gains = [row for pair in _both_inits(matches) if (row := tests.gain(*pair)) is not None]
    differences, gains = (_with_holm(rows, settings["confidence"]) for rows in (differences, gains))
    return Comparison(
        results_a,
        results_b,
        settings,
        matches,
        differences,
        gains,
        _settings(groups, matches, differences),
        _without_match(results_a, [(*match.place, name) for match in matches for name in match.recipes_a]),
        _without_match(results_b, [(*match.place, name) for match in matches for name in match.recipes_b]),
    )


def _with_holm(rows: Sequence[Compared], confidence: float) -> list[Compared]:
    p_values = adjusted(rows, "p_value", (*PLACE, "recipe_a", "recipe_b", "selection"))
    return [with_holm(row, p_value, confidence) for row, p_value in zip(rows, p_values, strict=True)]


# --- reading and matching -----------------------------------------------------------------------------------


def read_experiments(
    a: str | Path,
    b: str | Path,
    settings: Mapping[str, Any],
    given: tuple[str | Path, str | Path] | None = None,
) -> tuple[Finished, Finished]:
    """Two finished experiments; each bears its folder's name, or its path where names are equal.

    Args:
        a, b: the folders.
        settings: see `complete_settings`.
        given: paths that the user gave, if they are not the folders: those of bundles.

    Raises:
        SeedbedError: a folder without runs.csv, or the same folder twice; experiments of two tasks; a table
            that is not what its rule wrote.
    """
    folders = Path(a), Path(b)
    for folder in folders:
        check_finished(folder)
    a, b = given or (a, b)
    resolved = [Path(each).resolve() for each in (a, b)]
    if resolved[0] == resolved[1]:
        raise SeedbedError(
            "an experiment is not compared with itself",
            where=f"{a} and {b}",
            found=f"both are {resolved[0]}",
            hint="name two experiments",
        )
    names = [folder.resolve().name for folder in folders]
    if names[0] == names[1]:
        names = [str(Path(each)) for each in (a, b)]
    found = [read_finished(folder, settings, name) for name, folder in zip(names, folders, strict=True)]
    if found[0].task.name != found[1].task.name:
        raise SeedbedError(
            "experiments of two tasks have no metric in common",
            where=f"{a} and {b}",
            found=f"{found[0].task.name} and {found[1].task.name}",
            hint="name two experiments of one task",
        )
    if found[0].task != found[1].task:
        raise SeedbedError(
            "experiments whose checkpoints are selected by two metrics are not compared",
            where=f"{a} and {b}",
            found=" and ".join(metric_name(each.task.selection) for each in found),
            hint="give the datasets of both the same metric",
        )
    return found[0], found[1]


def _renamed(a: Finished, b: Finished, same: Mapping[str, str]) -> Finished:
    """The results b with the names that a has for the datasets and models of `same`."""
    ours, theirs = ({name for run in results.runs for name in (run.dataset, run.model)} for results in (a, b))
    for name, other in same.items():
        absent = [
            (results, each)
            for results, each, known in ((a, name, ours), (b, other, theirs))
            if each not in known
        ]
        if absent:
            results, each = absent[0]
            raise SeedbedError(
                "an experiment has no such dataset or model",
                where=str(results.folder / "runs.csv"),
                found=f"{each!r}; it has {', '.join(sorted(ours if results is a else theirs))}",
                hint="name first the dataset or model of the first experiment, then that of the second",
            )
        if name in theirs and name not in same.values():
            raise SeedbedError(
                f"the second experiment has both {name!r} and {other!r}",
                where=str(b.folder / "runs.csv"),
                found=f"{name}={other}",
                hint=f"one of them can answer to {name!r}: run {other!r} in an experiment of its own",
            )
    return b.with_names(same)


def find_matches(a: Finished, b: Finished) -> list[Match]:
    """What answers to each other: families of which a side has several recipes, then single recipes.

    Both are in the order of a. Equal names are matched; where there is none in a place, the only name of each
    side.
    """
    families = [match for match in _matches(a, b, "recipe_family", "best") if _is_choice(match)]
    return families + _matches(a, b, "recipe", "equal")


def _is_choice(match: Match) -> bool:
    return max(len(match.recipes_a), len(match.recipes_b)) > 1


def _matches(a: Finished, b: Finished, column: str, selection: str) -> list[Match]:
    names_a, names_b = (_names_by_place(results, column) for results in (a, b))
    return [
        Match(place, selection, *pair, names[pair[0]], names_b[place][pair[1]])
        for place, names in names_a.items()
        for pair in _answering(list(names), list(names_b.get(place, {})))
    ]


def _names_by_place(results: Finished, column: str) -> dict[Key, dict[str, tuple[str, ...]]]:
    """The recipes, or the families, of each place, and the recipes that bear each name."""
    return {
        place: {
            name: tuple(dict.fromkeys(run.recipe for run in group))
            for (name,), group in grouped(runs, column).items()
        }
        for place, runs in grouped(results.runs, *PLACE).items()
    }


def _answering(names_a: Sequence[str], names_b: Sequence[str]) -> list[tuple[str, str]]:
    """Equal names; where there is none, the only name of each side."""
    common = [(name, name) for name in names_a if name in names_b]
    if not common and len(names_a) == len(names_b) == 1:
        return [(names_a[0], names_b[0])]
    return common


def _both_inits(matches: Sequence[Match]) -> list[tuple[Match, Match]]:
    """The matches of both inits of one dataset, model, framework and pair of recipes, or of families."""

    def key(match: Match, init: str) -> tuple[str, ...]:
        return *match.place[:-1], init, match.selection, match.name_a, match.name_b

    found = {key(match, match.place[-1]): match for match in matches}
    pretrained = [match for match in matches if match.place[-1] == INITS[0]]
    pairs = [(match, found.get(key(match, INITS[1]))) for match in pretrained]
    return [(match, other) for match, other in pairs if other]


def _without_match(results: Finished, matched: Sequence[Key]) -> list[Key]:
    return [cell for cell in results.cells if cell not in set(matched)]


def _nothing_in_common(a: Finished, b: Finished) -> SeedbedError:
    shown = [", ".join("/".join(cell) for cell in list(each.cells)[:3]) for each in (a, b)]
    return SeedbedError(
        "these experiments have nothing in common that could be compared",
        where=f"{a.folder} and {b.folder}",
        found=f"{a.name} has {shown[0]}, ...; {b.name} has {shown[1]}, ...",
        hint="compared is what has the same dataset, model, framework and init, by name, and the same recipe "
        "or, each side at its best, the same family of recipes, by name, or a single one on each side; "
        "--same A=B says that dataset or model B of the second experiment answers to A of the first",
    )


# --- the runs behind a match --------------------------------------------------------------------------------


class _Groups:
    """The groups of both experiments, each read once, and checked against each other."""

    def __init__(self, a: Finished, b: Finished):
        self.results = {"a": a, "b": b}
        self._rows = {side: results.cells for side, results in self.results.items()}
        self._read: dict[tuple[str, Key], Group] = {}

    def get(self, side: str, cell: Key) -> Group:
        """The group of a cell of side a or b."""
        if (side, cell) not in self._read:
            results = self.results[side]
            self._read[side, cell] = read_group(results, self._rows[side][cell])
        return self._read[side, cell]

    def read(self, side: str) -> list[Group]:
        """The groups of a side that were asked for so far."""
        return [group for (of, _), group in self._read.items() if of == side]

    def sides(self, match: Match) -> tuple[list[Group], list[Group]]:
        """The groups of both sides of a match, one for each recipe; all must have the same classes."""
        keys = [("a", (*match.place, recipe)) for recipe in match.recipes_a]
        keys += [("b", (*match.place, recipe)) for recipe in match.recipes_b]
        if len({frozenset(self.get(*key).splits["test"].names) for key in keys}) > 1:
            self._read |= {key: _by_labels(self.results[key[0]], self.get(*key)) for key in keys}
        self._read |= dict(zip(keys, _with_shared_clusters([self.get(*key) for key in keys]), strict=True))
        groups = [self.get(*key) for key in keys]
        a, b = groups[: len(match.recipes_a)], groups[len(match.recipes_a) :]
        names = [set(group.splits["test"].names) for group in (*a, *b)]
        for other in names:
            if other != names[0]:
                raise SeedbedError(
                    f"dataset {match.place[0]!r} has other classes in one experiment than in the other",
                    where=f"{self.results['a'].folder} and {self.results['b'].folder}",
                    found=" and ".join(", ".join(sorted(each)) for each in (names[0], other)),
                    hint="accuracies on other classes are of other tasks: give one of the datasets another "
                    "name",
                )
        return a, b


def _with_shared_clusters(groups: Sequence[Group]) -> list[Group]:
    """The groups; those without clusters have those of another group on the same examples, if there is one.

    One of two experiments may be older than the column of clusters of its dataset.
    """
    known = next((group.splits for group in groups if _has_clusters(group)), None)
    if known is None:
        return list(groups)
    return [
        group
        if _has_clusters(group)
        or not all(known[split].same_examples(of) for split, of in group.splits.items())
        else replace(group, splits={split: of.sharing(known[split]) for split, of in group.splits.items()})
        for group in groups
    ]


def _has_clusters(group: Group) -> bool:
    return group.splits["test"].clusters is not None


def _by_labels(results: Finished, group: Group) -> Group:
    """The group with its classes called by their labels, if its dataset's folder is there to say them.

    Runs of earlier versions call them by what was then under `label_names`.
    """
    path = results.folder.parent / "data" / results.own(group.runs[0].dataset) / "labels.json"
    told = read_json(path) if path.is_file() else {}
    if told.get("names") != list(group.splits["test"].names):
        return group
    splits = {split: table.called(told["labels"]) for split, table in group.splits.items()}
    return replace(group, splits=splits)


# --- differences --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Design:
    """How the groups of two sides relate.

    Attributes:
        same_examples: whether both were evaluated on the same validation and test examples. Where they were
            not, each side's examples are drawn apart, as if both were samples of one population; where they
            overlap, the interval is too wide rather than too narrow.
        paired: whether seeds are pairs: the same seeds on the same examples, in the same framework. The same
            seed draws the same weights and the same order of examples. Where something else changed that,
            pairs that do not resemble each other cost degrees of freedom and nothing else.
    """

    same_examples: bool
    paired: bool


def _design(a: Group, b: Group) -> _Design:
    shared = all(a.splits[split].same_examples(b.splits[split]) for split in a.splits)
    return _Design(shared, shared and set(a.seeds) == set(b.seeds))


# What one side may choose from: candidates by the names of their recipes.
_Choices = dict[str, Candidate]


class _Tests:
    """Differences of the groups, with resampled examples that are drawn once for each dataset and split."""

    def __init__(self, groups: _Groups, settings: Mapping[str, Any]):
        self._groups, self._settings = groups, settings
        self._sides = SideMaker(settings)
        self._candidate = functools.lru_cache(MAX_KEPT)(self._make_candidate)

    def difference(self, match: Match) -> Compared:
        """The difference of the test metric of one match."""
        groups = self._groups.sides(match)
        design = _design(groups[0][0], groups[1][0])
        metric = groups[0][0].metric
        return self._row([match], metric, design, self._choices(match, design))

    def gain(self, pretrained: Match, random: Match) -> Compared | None:
        """The difference of what pretraining gains; None where the inits of a side have other seeds."""
        groups, others = (self._groups.sides(match) for match in (pretrained, random))
        if any(set(groups[side][0].seeds) != set(others[side][0].seeds) for side in (0, 1)):
            return None
        design = _design(groups[0][0], groups[1][0])
        choices = (self._choices(match, design) for match in (pretrained, random))
        gains = [_gains(*pair) for pair in zip(*choices, strict=True)]
        return self._row([pretrained, random], "gain", design, gains)

    def _choices(self, match: Match, design: _Design) -> list[_Choices]:
        """What each side of a match may choose from."""
        return [
            {
                recipe: self._candidate(side, (*match.place, recipe), design.same_examples)
                for recipe in recipes
            }
            for side, recipes in (("a", match.recipes_a), ("b", match.recipes_b))
        ]

    def _make_candidate(self, side: str, cell: Key, shared: bool) -> Candidate:
        group = self._groups.get(side, cell)
        # sides that share their examples share the draws, which go by this name
        examples = (cell[0],) if shared else (cell[0], side)
        validation = self._sides.validation(group.splits["validation"], group.seeds, *examples, "validation")
        test = self._sides.side(group.splits["test"], group.metric, group.seeds, *examples, "test")
        return Candidate(test, *validation)

    def _row(
        self, matches: Sequence[Match], what: str, design: _Design, choices: Sequence[_Choices]
    ) -> Compared:
        match = matches[0]
        a, b = (list(each.values()) for each in choices)
        names = [what, match.selection, *match.place, match.name_a, match.name_b]
        seed = named_seed(self._settings, names)
        how: How = {
            "paired": design.paired,
            "confidence": self._settings["confidence"],
            "seed": seed,
            "credit": CREDIT,
        }
        estimate = compare_best(a, b, **how)
        chosen = choice(a), choice(b)
        tests = a[chosen[0]].test, b[chosen[1]].test
        metric = self._groups.results["a"].metric
        of_a, of_b = (self._runs(side, matches, place) for side, place in zip("ab", chosen, strict=True))
        undefined = [
            sum(run.value(f"test_{metric}") is None for run in itertools.chain(*of)) for of in (of_a, of_b)
        ]
        sound = None
        if any(undefined):
            estimate = Estimate(None)
        elif any(map(verdicts.partly_collapsed, (of_a, of_b))):
            sound = _without_collapsed(tests, (of_a, of_b), how)
        place: dict[str, Any] = dict(zip(PLACE, match.place, strict=True))
        row = Compared(
            **place,
            recipe_a=list(choices[0])[chosen[0]],
            recipe_b=list(choices[1])[chosen[1]],
            selection=match.selection,
            same_examples=design.same_examples,
            paired=design.paired,
            delta=estimate.delta,
            ci_low=estimate.low,
            ci_high=estimate.high,
            given_low=estimate.given_low,
            given_high=estimate.given_high,
            p_value=estimate.p_value,
            direction=verdicts.direction(estimate.low, estimate.high),
            **_over_seeds(*tests, undefined, paired=design.paired),
            learned_nothing_a=verdicts.learned_nothing(itertools.chain(*of_a)),
            learned_nothing_b=verdicts.learned_nothing(itertools.chain(*of_b)),
        )
        of_gains = len(matches) > 1
        return with_verdict(
            row,
            of_a,
            of_b,
            sound,
            metric,
            of_gains=of_gains,
            ends=("ci_low", "ci_high", "given_low", "given_high"),
        )

    def _runs(self, side: str, matches: Sequence[Match], place: int) -> list[list[RunRow]]:
        """The runs of what a side has chosen; of a gain those of both inits.

        `place` is that among the choices: the recipes of a match; of two matches, every pair of recipes.
        """
        choices = itertools.product(*(getattr(match, f"recipes_{side}") for match in matches))
        chosen = next(itertools.islice(choices, place, None))
        return [
            self._groups.get(side, (*match.place, recipe)).runs
            for match, recipe in zip(matches, chosen, strict=True)
        ]


def _without_collapsed(tests: Sequence[Side], cells: Sequence[verdicts.Cells], how: How) -> verdicts.Sound:
    """The difference without collapsed runs, the recipes as chosen."""
    kept = [verdicts.sound_seeds(of_side) for of_side in cells]
    fewest = min(map(independent_seeds, kept))
    if not fewest:
        return verdicts.Sound(None, None, None, 0)
    found = estimate_without_collapsed(tests, kept, how)
    return verdicts.Sound(found.delta, found.low, found.high, fewest)


def _gains(pretrained: _Choices, random: _Choices) -> _Choices:
    """The gains of one side by the recipe of both inits, PRETRAINED/RANDOM where each has its own."""
    names = ["/".join(dict.fromkeys(pair)) for pair in itertools.product(pretrained, random)]
    gains = gain_candidates(list(pretrained.values()), list(random.values()))
    return dict(zip(names, gains, strict=True))


def _over_seeds(a: Side, b: Side, undefined: Sequence[int], *, paired: bool) -> dict[str, Any]:
    """Means, sample standard deviations and the exact test over seeds.

    `undefined` counts the runs of each side without a finite value, which leave it without a mean.
    """
    x, y = (dict(zip(side.seeds, _means(side), strict=True)) for side in (a, b))
    row = (ExactTest() if any(undefined) else exact_test(x, y, paired=paired)).columns
    row |= pairing(x, y) if paired and not any(undefined) else {}
    for side, values, missing in zip("ab", (list(x.values()), list(y.values())), undefined, strict=True):
        row[f"n_{side}"] = len(values)
        row[f"undefined_{side}"] = missing
        row[f"mean_{side}"] = None if missing else statistics.mean(values)
        row[f"sd_{side}"] = None if missing else statistics.sample_sd(values)
    return row


def _means(side: Side) -> list[float]:
    return side.scores.mean(axis=1, dtype=np.float64).tolist()


# --- settings -----------------------------------------------------------------------------------------------


def _settings(groups: _Groups, matches: Sequence[Match], differences: Sequence[Row]) -> list[Row]:
    """What differs between the sides and is no result: data, models, recipes, seeds, versions, hardware."""
    rows = [*_definitions(groups, matches), *_families(matches)]
    for row in differences:
        rows += _of_groups(groups, row)
    machines = [_machine(groups.read(side)) for side in "ab"]
    rows += [("software and hardware", *told) for told in _paired_keys(*machines)]
    columns = ("where", "setting", "a", "b")
    return [dict(zip(columns, row, strict=True)) for row in dict.fromkeys(rows) if row[2] != row[3]]


# Where, what, and its value on each side.
_Setting = tuple[str, str, str, str]


def _definitions(groups: _Groups, matches: Sequence[Match]) -> list[_Setting]:
    """The names of datasets and models, and their definitions, where both are known."""
    rows: list[_Setting] = []
    for folder, kind, index in (("data", "dataset", 0), ("models", "model", 1)):
        for name in dict.fromkeys(match.place[index] for match in matches):
            a, b = (groups.results[side] for side in "ab")
            rows.append((f"{kind} {name}", "name", a.own(name), b.own(name)))
            of_a, of_b = (_fingerprint(each.folder.parent / folder / each.own(name)) for each in (a, b))
            if of_a is not None and of_b is not None:
                rows.append((f"{kind} {name}", "fingerprint of its definition", of_a, of_b))
    return rows


def _families(matches: Sequence[Match]) -> list[_Setting]:
    """The recipes that each side may choose from."""
    return [
        (
            f"recipes of {_both(match.name_a, match.name_b)}",
            "to choose from",
            ", ".join(match.recipes_a),
            ", ".join(match.recipes_b),
        )
        for match in matches
        if match.selection == "best"
    ]


def _of_groups(groups: _Groups, row: Row) -> list[_Setting]:
    """Recipe, seeds and examples of both groups of a difference."""
    place = tuple(row[key] for key in PLACE)
    a, b = (groups.get(side, (*place, row[f"recipe_{side}"])) for side in "ab")
    recipe = f"recipe {_both(row['recipe_a'], row['recipe_b'])}"
    told = _paired_keys(_flat(_recorded(a)), _flat(_recorded(b)))
    rows: list[_Setting] = [(recipe, *each) for each in told]
    seeds = [" ".join(map(_seed_name, group.seeds)) for group in (a, b)]
    rows.append((", ".join(place), "seeds", seeds[0], seeds[1]))
    rows += [(", ".join(place[:2]), *each) for each in _inputs(a, b)]
    for split in ("validation", "test"):
        if not a.splits[split].same_examples(b.splits[split]):
            sizes = [f"{len(group.splits[split].ids):,}, not the same ones" for group in (a, b)]
            rows.append((f"dataset {place[0]}", f"{split} examples", sizes[0], sizes[1]))
    return rows


def _inputs(a: Group, b: Group) -> list[tuple[str, str, str]]:
    """The SHA-256 of what both were trained on; none of runs that are older than its record."""
    recorded = [group.documents[0].get("inputs", {}) for group in (a, b)]
    known = [(told, name) for name, told in TRAINED_ON.items() if all(name in of for of in recorded)]
    return [(told, *(of[name][:16] for of in recorded)) for told, name in known]


def _both(a: str, b: str) -> str:
    return a if a == b else f"{a} and {b}"


def _fingerprint(folder: Path) -> str | None:
    path = folder / "fingerprint.json"
    return read_json(path)["fingerprint"] if path.is_file() else None


def _recorded(group: Group) -> dict[str, Any]:
    """What a group's runs were asked to do; the same in all, but for how many seeds were one model."""
    document = group.documents[0]
    chosen = {key: document.get(key) for key in ("evaluation", "deterministic", "updates")}
    chosen["cuda_graphs"] = document.get("cuda_graphs", False)  # runs from before there was the key
    sizes = set(map(trained_together, group.documents))
    chosen["seeds trained as one model"] = ", ".join(map(str, sorted(sizes)))
    return {**document["settings"], **chosen}


def _machine(groups: Sequence[Group]) -> dict[str, str]:
    """Versions, commit and hardware of all runs of a side; several values of one key are listed."""
    found: dict[str, dict[str, None]] = {}
    for document in (document for group in groups for document in group.documents):
        told = {"commit": document["git_commit"], "device": document["device"]}
        hardware = {key: value for key, value in document["hardware"].items() if key not in OF_CHANCE}
        told |= _flat({"hardware": hardware}) | document["versions"]
        for key, value in told.items():
            found.setdefault(key, {})[_shown(value)] = None
    return {key: ", ".join(values) for key, values in found.items()}


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested mappings as one, keys joined by dots, values as text."""
    flat: dict[str, str] = {}
    for key, item in value.items():
        if isinstance(item, Mapping):
            flat |= _flat(item, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = _shown(item)
    return flat


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)


def _paired_keys(a: Mapping[str, str], b: Mapping[str, str]) -> list[tuple[str, str, str]]:
    return [(key, a.get(key, "not recorded"), b.get(key, "not recorded")) for key in {**a, **b}]


def _seed_name(seed: tuple[int, int]) -> str:
    init, data = seed
    return str(init) if init == data else f"{init}-{data}"
