"""Two finished experiments side by side: which of their runs answer to each other, and how these differ.

Only the folders of the experiments are read: the table of runs, and each run's predictions and settings.
Groups of seeds answer to each other where dataset, model, framework and init have the same names in both, and
their recipes, too; where each side has one recipe, these two do, whatever their names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from seedbed import statistics
from seedbed.bootstrap import Candidate, Draws, Estimate, Side, choice, compare, compare_best
from seedbed.contrasts import UNDEFINED_LOSS, Combined, over_units
from seedbed.errors import SeedbedError
from seedbed.files import fingerprint, read_json
from seedbed.plan import RUN_KEYS, Run
from seedbed.predictions import CellPredictions, read_predictions, stack
from seedbed.rows import CELL, Row, grouped, read_table

PLACE = ("dataset", "model", "framework", "init")
INITS = ("pretrained", "random")
Key = tuple[str, ...]


@dataclass(frozen=True)
class Results:
    """A finished experiment: the name that tables give it, its folder, and the rows of its runs.csv."""

    name: str
    folder: Path
    runs: list[Row]


@dataclass(frozen=True)
class Match:
    """Two groups of seeds that answer to each other: one place, a recipe of each side."""

    place: Key
    recipe_a: str
    recipe_b: str

    @property
    def by_name(self) -> bool:
        """Whether the recipes have the same name; else each is the only one of its side."""
        return self.recipe_a == self.recipe_b


@dataclass(frozen=True)
class Group:
    """The runs of one place and recipe, with what each recorded (run.json) and predicted."""

    runs: list[Row]
    documents: list[dict[str, Any]]
    splits: dict[str, CellPredictions]

    @cached_property
    def seeds(self) -> tuple[tuple[int, int], ...]:
        """(init seed, data seed) of each run."""
        return tuple((run["init_seed"], run["data_seed"]) for run in self.runs)


@dataclass(frozen=True)
class Comparison:
    """What there is to say of two experiments.

    Attributes:
        a, b: the experiments; differences are a minus b.
        statistics: confidence, replicates and bootstrap_seed.
        matches: the groups of seeds that answer to each other.
        differences: rows of test accuracy, one a match, and one for each family of several recipes with each
            side's best on validation.
        gains: rows of what pretraining gains, one for each match whose inits are both there.
        settings: what was set, installed or present on one side and not on the other.
        only_a, only_b: groups of seeds (CELL) without an answer on the other side.
    """

    a: Results
    b: Results
    statistics: Mapping[str, Any]
    matches: list[Match]
    differences: list[Row]
    gains: list[Row]
    settings: list[Row]
    only_a: list[Key]
    only_b: list[Key]


def compare_experiments(a: str | Path, b: str | Path, settings: Mapping[str, Any]) -> Comparison:
    """Compare the experiments in two folders, such as results/x and results/y.

    Args:
        a, b: the folders; differences are a minus b.
        settings: confidence, replicates and bootstrap_seed, as in `statistics` of the config.

    Raises:
        SeedbedError: a folder that holds no finished experiment, one folder twice, nothing that answers to
            each other, classes that differ, runs whose files do not fit together.
    """
    results_a, results_b = read_results(a, b)
    matches = match(results_a, results_b)
    if not matches:
        raise _nothing_in_common(results_a, results_b)
    groups = _Groups(results_a, results_b)
    tests = _Tests(groups, settings)
    differences = [tests.difference(pair) for pair in matches]
    differences += [tests.best(*families) for families in match_families(results_a, results_b)]
    gains = [tests.gain(*pair) for pair in _both_inits(matches)]
    gains = [row for row in gains if row is not None]
    for rows in (differences, gains):
        for row, p_holm in zip(rows, statistics.holm([row["p_value"] for row in rows]), strict=True):
            row["p_holm"] = p_holm
    return Comparison(
        results_a,
        results_b,
        settings,
        matches,
        differences,
        gains,
        _settings(groups, matches),
        _without_answer(results_a, [(*pair.place, pair.recipe_a) for pair in matches]),
        _without_answer(results_b, [(*pair.place, pair.recipe_b) for pair in matches]),
    )


# --- reading and matching -----------------------------------------------------------------------------------


def read_results(a: str | Path, b: str | Path) -> tuple[Results, Results]:
    """The tables of runs of two experiments; each bears its folder's name, or its path where names are equal.

    Raises:
        SeedbedError: a folder without runs.csv, or the same folder twice.
    """
    folders = Path(a), Path(b)
    for folder in folders:
        if not (folder / "runs.csv").is_file():
            raise SeedbedError(
                "no finished experiment to compare",
                where=str(folder / "runs.csv"),
                found="a folder without this table" if folder.is_dir() else "no such folder",
                hint="name the folders of two experiments that have run, such as results/demo",
            )
    resolved = [folder.resolve() for folder in folders]
    if resolved[0] == resolved[1]:
        raise SeedbedError(
            "an experiment is not compared with itself",
            where=f"{a} and {b}",
            found=f"both are {resolved[0]}",
            hint="name two experiments",
        )
    names = [folder.name for folder in resolved]
    if names[0] == names[1]:
        names = [str(folder) for folder in folders]
    return tuple(
        Results(name, folder, read_table(folder / "runs.csv"))
        for name, folder in zip(names, folders, strict=True)
    )


def match(a: Results, b: Results) -> list[Match]:
    """The groups of seeds that answer to each other, in the order of a."""
    recipes_a, recipes_b = (_names_by_place(results, "recipe") for results in (a, b))
    return [
        Match(place, *pair)
        for place, names in recipes_a.items()
        for pair in _answering(names, recipes_b.get(place, []))
    ]


def match_families(a: Results, b: Results) -> list[tuple[Key, str, str]]:
    """(place, family of a, family of b) where one of both has several recipes to choose from."""
    families_a, families_b = (_names_by_place(results, "recipe_family") for results in (a, b))
    found = [
        (place, *pair)
        for place, names in families_a.items()
        for pair in _answering(names, families_b.get(place, []))
    ]
    return [
        (place, family_a, family_b)
        for place, family_a, family_b in found
        if max(len(_members(a, place, family_a)), len(_members(b, place, family_b))) > 1
    ]


def _names_by_place(results: Results, column: str) -> dict[Key, list[str]]:
    return {
        place: list(dict.fromkeys(run[column] for run in runs))
        for place, runs in grouped(results.runs, *PLACE).items()
    }


def _answering(names_a: Sequence[str], names_b: Sequence[str]) -> list[tuple[str, str]]:
    """Equal names; where there is none, the only name of each side."""
    common = [(name, name) for name in names_a if name in names_b]
    if not common and len(names_a) == len(names_b) == 1:
        return [(names_a[0], names_b[0])]
    return common


def _members(results: Results, place: Key, family: str) -> list[str]:
    runs = grouped(results.runs, *PLACE, "recipe_family").get((*place, family), [])
    return list(dict.fromkeys(run["recipe"] for run in runs))


def _both_inits(matches: Sequence[Match]) -> list[tuple[Match, Match]]:
    """The matches of both inits of one dataset, model, framework and pair of recipes."""
    found = {(*pair.place, pair.recipe_a, pair.recipe_b): pair for pair in matches}
    pairs = []
    for pair in matches:
        other = found.get((*pair.place[:-1], INITS[1], pair.recipe_a, pair.recipe_b))
        if pair.place[-1] == INITS[0] and other:
            pairs.append((pair, other))
    return pairs


def _without_answer(results: Results, answered: Sequence[Key]) -> list[Key]:
    return [cell for cell in grouped(results.runs, *CELL) if cell not in set(answered)]


def _nothing_in_common(a: Results, b: Results) -> SeedbedError:
    shown = [", ".join("/".join(cell) for cell in list(grouped(each.runs, *CELL))[:3]) for each in (a, b)]
    return SeedbedError(
        "these experiments have nothing in common that could be compared",
        where=f"{a.folder} and {b.folder}",
        found=f"{a.name} has {shown[0]}, ...; {b.name} has {shown[1]}, ...",
        hint="compared is what has the same dataset, model, framework and init, by name, and the same "
        "recipe, or a single one on each side",
    )


# --- the runs behind a match --------------------------------------------------------------------------------


class _Groups:
    """The groups of both experiments, each read once, and checked against each other."""

    def __init__(self, a: Results, b: Results):
        self.results = {"a": a, "b": b}
        self._rows = {side: grouped(results.runs, *CELL) for side, results in self.results.items()}
        self._read: dict[tuple[str, Key], Group] = {}

    def get(self, side: str, cell: Key) -> Group:
        """The group of a cell of side a or b."""
        if (side, cell) not in self._read:
            self._read[side, cell] = read_group(self.results[side].folder, self._rows[side][cell])
        return self._read[side, cell]

    def pair(self, match: Match) -> tuple[Group, Group]:
        """Both groups of a match, which must have the same classes."""
        a, b = (
            self.get(side, (*match.place, recipe))
            for side, recipe in (("a", match.recipe_a), ("b", match.recipe_b))
        )
        names = [set(group.splits["test"].names) for group in (a, b)]
        if names[0] != names[1]:
            raise SeedbedError(
                f"dataset {match.place[0]!r} has other classes in one experiment than in the other",
                where=f"{self.results['a'].folder} and {self.results['b'].folder}",
                found=" and ".join(", ".join(sorted(each)) for each in names),
                hint="accuracies on other classes are of other tasks: give one of the datasets another name",
            )
        return a, b


def read_group(folder: Path, runs: Sequence[Row]) -> Group:
    """What the runs of one cell recorded and predicted.

    Raises:
        SeedbedError: a file of a run is missing; its predictions do not have the accuracy of runs.csv, or are
            of other examples than those of the first run.
    """
    documents, predictions = [], []
    for row in runs:
        path = folder / "runs" / Run(**{key: row[key] for key in RUN_KEYS}).folder
        missing = [name for name in ("run.json", "predictions.csv") if not (path / name).is_file()]
        if missing:
            raise SeedbedError(
                "a run of the table of runs is not there",
                where=str(path / missing[0]),
                hint="copy experiments with their run folders, or let Snakemake make the run anew",
            )
        documents.append(read_json(path / "run.json"))
        predictions.append(read_predictions(path / "predictions.csv", documents[-1]["label_names"]))
        _check_run(path, row, predictions[0], predictions[-1])
    return Group(
        list(runs),
        documents,
        {split: stack([each[split] for each in predictions]) for split in ("validation", "test")},
    )


def _check_run(
    path: Path, row: Row, first: Mapping[str, CellPredictions], other: Mapping[str, CellPredictions]
) -> None:
    test = other["test"]
    counted = float(test.correct.mean())
    if abs(counted - row["test_accuracy"]) > 0.5 / len(test.ids):
        raise SeedbedError(
            "the predictions of a run do not have the accuracy of the table of runs",
            where=f"{path}/predictions.csv",
            found=f"{counted} by counting, {row['test_accuracy']} in runs.csv",
            hint="the run was made anew since: let Snakemake bring the experiment up to date",
        )
    if not all(same_examples(first[split], other[split]) for split in first):
        raise SeedbedError(
            "two runs of one experiment were not evaluated on the same examples",
            where=f"{path}/predictions.csv",
            hint="let Snakemake bring the experiment up to date",
        )


def same_examples(a: CellPredictions, b: CellPredictions) -> bool:
    """Whether two tables hold the same examples with the same labels in the same order."""
    if a.ids != b.ids:
        return False
    return bool((np.array(a.names)[a.labels] == np.array(b.names)[b.labels]).all())


# --- differences --------------------------------------------------------------------------------------------


class _Tests:
    """Differences of the groups, with resampled examples that are drawn once for each dataset and split."""

    def __init__(self, groups: _Groups, settings: Mapping[str, Any]):
        self.groups, self.settings = groups, settings
        self._draws: dict[tuple[str, ...], Draws] = {}

    def difference(self, match: Match) -> Row:
        """The difference of test accuracy of one match."""
        pair = self.groups.pair(match)
        shared, paired = _shared(*pair), _paired(*pair)
        dataset = match.place[0]
        a, b = (
            Side(group.splits["test"].correct, group.seeds, self._draw(dataset, "test", side, group, shared))
            for side, group in zip("ab", pair, strict=True)
        )
        estimate = compare(a, b, paired=paired, **self._how(*match.place, match.recipe_a, match.recipe_b))
        return self._row(match, "equal", shared, paired, a, b, estimate)

    def best(self, place: Key, family_a: str, family_b: str) -> Row:
        """The difference of each side's best recipe of a family on validation."""
        names = {"a": family_a, "b": family_b}
        members = {
            side: [
                (recipe, self.groups.get(side, (*place, recipe)))
                for recipe in _members(self.groups.results[side], place, family)
            ]
            for side, family in names.items()
        }
        first = [members[side][0][1] for side in "ab"]
        shared, paired = _shared(*first), _paired(*first)
        candidates = {
            side: [self._candidate(place[0], side, group, shared) for _, group in members[side]]
            for side in "ab"
        }
        how = self._how(*place, family_a, family_b)
        estimate = compare_best(candidates["a"], candidates["b"], paired=paired, **how)
        chosen = {side: choice(candidates[side]) for side in "ab"}
        match = Match(place, *(members[side][chosen[side]][0] for side in "ab"))
        a, b = (candidates[side][chosen[side]].test for side in "ab")
        return self._row(match, "best", shared, paired, a, b, estimate)

    def gain(self, pretrained: Match, random: Match) -> Row | None:
        """The difference of what pretraining gains; None where the inits of a side have other seeds."""
        pairs = [self.groups.pair(match) for match in (pretrained, random)]
        if any(set(pairs[0][side].seeds) != set(pairs[1][side].seeds) for side in (0, 1)):
            return None
        shared, paired = _shared(*pairs[0]), _paired(*pairs[0])
        a, b = (
            self._gain(pretrained.place[0], "ab"[side], pairs[0][side], pairs[1][side], shared)
            for side in (0, 1)
        )
        how = self._how("gain", *pretrained.place, pretrained.recipe_a, pretrained.recipe_b)
        estimate = compare(a, b, paired=paired, **how)
        return self._row(pretrained, "equal", shared, paired, a, b, estimate)

    def _gain(self, dataset: str, side: str, pretrained: Group, random: Group, shared: bool) -> Side:
        draws = self._draw(dataset, "test", side, pretrained, shared)
        tested = [Side(group.splits["test"].correct, group.seeds, draws) for group in (pretrained, random)]
        return Combined(*tested, -1)

    def _candidate(self, dataset: str, side: str, group: Group, shared: bool) -> Candidate:
        test = self._draw(dataset, "test", side, group, shared)
        validation = self._draw(dataset, "validation", side, group, shared)
        loss = group.splits["validation"].loss
        return Candidate(
            Side(group.splits["test"].correct, group.seeds, test),
            Side(group.splits["validation"].correct, group.seeds, validation),
            Side(-np.where(np.isfinite(loss), loss, UNDEFINED_LOSS), group.seeds, validation),
        )

    def _draw(self, dataset: str, split: str, side: str, group: Group, shared: bool) -> Draws:
        """One set of draws for both sides where they share their examples, else one for each."""
        key = (dataset, split) if shared else (dataset, split, side)
        examples = len(group.splits[split].ids)
        if key not in self._draws:
            self._draws[key] = Draws(examples, self.settings["replicates"], self._seed(*key))
        return self._draws[key]

    def _how(self, *names: str) -> dict[str, Any]:
        return {"confidence": self.settings["confidence"], "seed": self._seed(*names)}

    def _seed(self, *names: str) -> int:
        """A seed of random numbers for each purpose, whatever else is compared."""
        return int(fingerprint([self.settings["bootstrap_seed"], *names]), 16)

    def _row(
        self, match: Match, selection: str, shared: bool, paired: bool, a: Side, b: Side, estimate: Estimate
    ) -> Row:
        x, y = _means(a), _means(b)
        p_value, units = _seeds_p(a, b, paired=paired)
        return {
            **dict(zip(PLACE, match.place, strict=True)),
            "recipe_a": match.recipe_a,
            "recipe_b": match.recipe_b,
            "selection": selection,
            "same_examples": shared,
            "paired": paired,
            "n_a": len(x),
            "n_b": len(y),
            "mean_a": statistics.mean(x),
            "sd_a": statistics.sample_sd(x),
            "mean_b": statistics.mean(y),
            "sd_b": statistics.sample_sd(y),
            "delta": estimate.delta,
            "ci_low": estimate.low,
            "ci_high": estimate.high,
            "p_value": p_value,
            "units": units,
        }


def _shared(a: Group, b: Group) -> bool:
    """Whether both groups were evaluated on the same validation and test examples.

    Where they were not, each side's examples are drawn apart, as if both were samples of one population;
    where they overlap, the interval is too wide rather than too narrow.
    """
    return all(same_examples(a.splits[split], b.splits[split]) for split in a.splits)


def _paired(a: Group, b: Group) -> bool:
    """Whether seeds are pairs: the same seeds on the same examples, in the same framework.

    The same seed draws the same weights and the same order of examples. Where something else changed that,
    pairs that do not resemble each other cost degrees of freedom and nothing else.
    """
    return set(a.seeds) == set(b.seeds) and _shared(a, b)


def _seeds_p(a: Side, b: Side, *, paired: bool) -> tuple[float | None, str]:
    """Exact two-sided p over seeds, and what counted as one; None where a side has one seed."""
    (units, x), (_, y) = (over_units(dict(zip(side.seeds, _means(side), strict=True))) for side in (a, b))
    if min(len(x), len(y)) < 2:
        return None, units
    if paired:
        return statistics.sign_flip_p([value - y[unit] for unit, value in x.items()]), units
    return statistics.permutation_p(list(x.values()), list(y.values())), units


def _means(side: Side) -> list[float]:
    return side.scores.mean(axis=1, dtype=np.float64).tolist()


# --- settings -----------------------------------------------------------------------------------------------


def _settings(groups: _Groups, matches: Sequence[Match]) -> list[Row]:
    """What differs between the sides and is no result: data, models, recipes, seeds, versions, hardware."""
    pairs = [(match, groups.pair(match)) for match in matches]
    rows = []
    for folder, kind, index in (("data", "dataset", 0), ("models", "model", 1)):
        for name in dict.fromkeys(match.place[index] for match in matches):
            definitions = [_fingerprint(groups.results[side].folder.parent / folder / name) for side in "ab"]
            if None not in definitions:
                rows.append((f"{kind} {name}", "fingerprint of its definition", *definitions))
    for match, (a, b) in pairs:
        what = match.recipe_a if match.by_name else f"{match.recipe_a} and {match.recipe_b}"
        for key, *values in _paired_keys(*(_flat(_recorded(group)) for group in (a, b))):
            rows.append((f"recipe {what}", key, *values))
        place = ", ".join(match.place)
        rows.append((place, "seeds", *(" ".join(map(_seed_name, group.seeds)) for group in (a, b))))
        for split in ("validation", "test"):
            if not same_examples(a.splits[split], b.splits[split]):
                told = (f"{len(group.splits[split].ids):,}, not the same ones" for group in (a, b))
                rows.append((f"dataset {match.place[0]}", f"{split} examples", *told))
    machines = [_machine([group for _, pair in pairs for group in (pair[side],)]) for side in (0, 1)]
    rows += [("software and hardware", key, *values) for key, *values in _paired_keys(*machines)]
    columns = ("where", "setting", "a", "b")
    return [dict(zip(columns, row, strict=True)) for row in dict.fromkeys(rows) if row[2] != row[3]]


def _fingerprint(folder: Path) -> str | None:
    path = folder / "fingerprint.json"
    return read_json(path)["fingerprint"] if path.is_file() else None


def _recorded(group: Group) -> dict[str, Any]:
    """What a group's runs were asked to do; the same in all of them."""
    document = group.documents[0]
    chosen = {key: document.get(key) for key in ("evaluation", "deterministic", "updates")}
    return {**document["settings"], **chosen}


def _machine(groups: Sequence[Group]) -> dict[str, str]:
    """Versions, commit and hardware of all runs of a side; several values of one key are listed."""
    found: dict[str, dict[str, None]] = {}
    for document in (document for group in groups for document in group.documents):
        told = {"commit": document["git_commit"], "device": document["device"]}
        told |= _flat({"hardware": document["hardware"]}) | document["versions"]
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
