"""Whether a difference bears a verdict: the decision by itself, and the texts and tables that obey it."""

import dataclasses
import re

import pytest
from builders_report import aggregate, asked, experiment_of, make_whole, write_report, write_whole
from builders_rows import changed, run_row
from synthetic import make_experiment, make_generation

from seedbed.analysis import contrasts, statistics, tables, verdicts
from seedbed.analysis.experiment import Experiment
from seedbed.analysis.table_rows import RunRow
from seedbed.analysis.verdicts import COLLAPSE, FEW_SEEDS, NOTHING_LEARNED, ONE_CLASS, Sound, no_verdict
from seedbed.core.errors import SeedbedError
from seedbed.core.rows import read_table, write_table
from seedbed.core.tasks import DEFAULT, TASKS
from seedbed.report import sections_accuracy, sections_contrasts, sources
from seedbed.report.answer import answer, of_gains, of_inits
from seedbed.report.grounds import grounds
from seedbed.report.next_step import next_step
from seedbed.report.opening import opening
from seedbed.report.power import power_table

FLAT = {"noise": 0.0, "frameworks": ["transformers"], "sizes": {"validation": 60, "test": 200}}
PLACE = "reviews/small"


def runs_of(*collapsed, learned=True, seeds=None, **more):
    """A run a flag: whether it collapsed; seeds 0, 1, ... unless they are given."""
    seeds = seeds or [(number, number) for number in range(len(collapsed))]
    return [
        run_row(
            {"init_seed": seed[0], "data_seed": seed[1], "collapsed": flag, "diverged": False}
            | {"not_above_majority": flag or not learned, "test_all_same": flag, "validation_all_same": flag}
            | more
        )
        for seed, flag in zip(seeds, collapsed, strict=True)
    ]


def difference(low, high, **more):
    found = verdicts.direction(low, high)
    row = {"delta": (low + high) / 2, "ci_low": low, "ci_high": high, "direction": found, "equivalence": None}
    return row | more


def decide(a, b, row=None, sound=None):
    return no_verdict(row or difference(0.1, 0.2), [a], [b], sound)


GOOD = runs_of(False, False, False)


# --- the decision -------------------------------------------------------------------------------------------


def test_runs_that_learned_something_may_speak():
    assert decide(GOOD, GOOD) is None
    # one side that learned nothing is what pretraining may make of it
    assert decide(GOOD, runs_of(False, False, False, learned=False)) is None
    assert decide(GOOD, runs_of(True, True, True)) is None


def test_runs_that_learned_nothing_bear_no_verdict():
    weak = runs_of(False, False, False, learned=False)
    assert decide(weak, weak) == NOTHING_LEARNED
    assert decide(weak, runs_of(True, True, True)) == NOTHING_LEARNED
    assert decide(runs_of(True, True, True), runs_of(True, True, True)) == ONE_CLASS
    diverged = runs_of(True, True, True, diverged=True)
    assert decide(diverged, runs_of(True, True, True)) == NOTHING_LEARNED
    # one that learned is enough
    assert decide(weak, [*weak[:2], *GOOD[2:]]) is None


def test_on_the_test_set_without_leaks_its_own_flag_counts():
    runs = runs_of(False, False, False, not_above_majority_without_leaks=True)
    assert decide(runs, runs, difference(0.1, 0.2, test_set="without leaks")) == NOTHING_LEARNED
    assert decide(runs, runs, difference(0.1, 0.2, test_set="all")) is None


def test_of_generation_the_untrained_model_is_the_bar_and_no_run_of_its_own():
    untrained = runs_of(False, False, False, method="none", not_above_majority=None)
    worse = runs_of(False, False, False, not_above_majority=None, not_above_untrained=True)
    better = runs_of(False, False, False, not_above_majority=None, not_above_untrained=False)
    assert decide(worse, untrained) == NOTHING_LEARNED
    assert decide(better, untrained) is None
    assert decide(worse, better) is None
    # two models that nobody trained differ by what they know
    assert decide(untrained, untrained) is None


def test_runs_of_which_nothing_is_known_are_not_called_empty():
    published = runs_of(False, False, False, not_above_majority=None, test_all_same=None)
    assert decide(published, published) is None


@pytest.mark.parametrize(("a", "b", "expected"), [(2, 2, FEW_SEEDS), (2, 10, FEW_SEEDS), (3, 10, None)])
def test_the_side_with_fewer_seeds_decides(a, b, expected):
    sides = [runs_of(*[False] * number) for number in (a, b)]
    assert decide(*sides) == expected
    assert decide(*reversed(sides)) == expected


def test_crossed_seeds_are_as_many_as_the_fewer_kind():
    two = runs_of(*[False] * 10, seeds=[(init, data) for init in range(2) for data in range(5)])
    three = runs_of(*[False] * 9, seeds=[(init, data) for init in range(3) for data in range(3)])
    assert decide(two, two) == FEW_SEEDS
    assert decide(three, three) is None


def test_one_seed_has_no_interval_and_needs_no_other_reason():
    row = {"delta": 0.1, "ci_low": None, "ci_high": None, "direction": None, "n_a": 1, "n_b": 3}
    assert decide(GOOD[:1], GOOD, row) is None
    assert verdicts.verdict(row) == "single"


@pytest.mark.parametrize(
    ("found", "sound", "expected"),
    [
        ((0.1, 0.2), Sound(0.1, 0.05, 0.15, 4), None),
        ((0.1, 0.2), Sound(0.1, -0.01, 0.2, 4), COLLAPSE),
        ((0.1, 0.2), Sound(-0.1, -0.2, -0.05, 4), COLLAPSE),
        ((0.1, 0.2), Sound(0.1, None, None, 4), COLLAPSE),
        # what is left has two seeds
        ((0.1, 0.2), Sound(0.1, 0.05, 0.15, 2), COLLAPSE),
        ((0.1, 0.2), Sound(None, None, None, 0), COLLAPSE),
        # what claims nothing cannot be claimed by a collapse
        ((-0.1, 0.2), Sound(0.1, 0.05, 0.15, 4), None),
    ],
)
def test_a_verdict_that_collapsed_runs_make_does_not_stand(found, sound, expected):
    five = runs_of(False, False, False, False, True)
    assert decide(five, runs_of(*[False] * 5), difference(*found), sound) == expected


def test_what_is_unclear_after_holm_cannot_hang_on_a_collapse():
    row = difference(0.1, 0.2, direction="unclear")
    assert decide(runs_of(False, False, False, True), GOOD, row, Sound(0.1, -0.1, 0.3, 3)) is None


@pytest.mark.parametrize(("equivalent", "expected"), [(True, None), (False, COLLAPSE)])
def test_an_equivalence_that_collapsed_runs_make_does_not_stand(equivalent, expected):
    row = difference(-0.005, 0.004, equivalence="equivalent")
    sound = Sound(0.0, -0.03, 0.03, 4, equivalent)
    assert decide(runs_of(False, False, False, False, True), runs_of(*[False] * 5), row, sound) == expected


def test_a_side_that_collapsed_as_a_whole_keeps_its_runs():
    assert not verdicts.partly_collapsed([runs_of(True, True)])
    assert verdicts.partly_collapsed([runs_of(True, False)])
    assert verdicts.sound_seeds([runs_of(True, True)]) == [(0, 0), (1, 1)]
    # of a gain, the seeds that both inits have left
    assert verdicts.sound_seeds([runs_of(True, False, False), runs_of(False, False, True)]) == [(1, 1)]


def test_the_accuracy_that_is_above_the_majority_class():
    needed = verdicts.needed_accuracy(200, 0.395, 0.95)
    right = round(200 * needed)
    assert statistics.wilson_lower(right, 200, 0.95) > 0.395 >= statistics.wilson_lower(right - 1, 200, 0.95)
    assert verdicts.needed_accuracy(6, 1.0, 0.95) is None
    assert verdicts.needed_accuracy(2, 0.5, 0.95) is None


def decided(experiment, ask=of_inits):
    """The verdict on the first question, by framework or method."""
    findings = answer(ask(experiment)[0]).findings
    return {difference.name: one.verdict for one in findings for difference in one.differences}


def unlearned(experiment, ask=of_inits):
    """The runs of the first question that learned nothing."""
    (found,) = (one.unlearned for one in answer(ask(experiment)[0]).findings if one.unlearned)
    return found


def lines(experiment):
    """The texts of the only question's lines by their kind."""
    (group,) = opening(experiment).groups
    return {line.kind: line.text for line in group.lines}


# --- nothing was learned ------------------------------------------------------------------------------------


def test_where_no_run_is_above_the_majority_class_the_first_sentence_says_so(tmp_path):
    levels = {("pretrained", 0): 0.2, ("pretrained", 1): 0.19, ("random", 0): 0.36, ("random", 1): 0.34}
    made = make_experiment(
        tmp_path,
        labels=("a", "b", "c"),
        accuracy=lambda run: levels[run.init, run.init_seed],
        seeds=[0, 1],
        recipe={"epochs": 1},
        **FLAT,
    )
    calls = asked(lambda: write_whole(made))
    (row,) = read_table(made.outputs["contrasts"])
    assert row["ci_high"] < 0
    assert row["no_verdict"] == NOTHING_LEARNED
    ((said,),) = calls["opening.answer"]
    (finding,) = said.findings
    found = finding.unlearned
    assert (finding.verdict, found.kind, found.runs) == (NOTHING_LEARNED, "plain", 4)
    assert found.bar.majority == pytest.approx(0.335)
    needed = found.needed
    assert (needed.right, needed.best_right, found.test_examples) == (78, 72, 200)
    assert (found.remedy.rates, found.remedy.epochs) == ((1e-5,), (1,))
    # no verdict anywhere, and no difference beside it
    assert "points" not in lines(experiment_of(made))["answer"]
    assert calls["opening.step"] == [("unlearned", found)]
    assert {one.kind for one, _ in calls["power.outcome"]} == {"unlearned"}


def test_what_to_try_depends_on_what_the_training_loss_did(tmp_path):
    made = make_experiment(tmp_path, accuracy=lambda run: 0.5, seeds=[0, 1, 2], **FLAT)
    aggregate(made)
    experiment = experiment_of(made)

    def told(first, last, **more):
        columns = {"first_train_loss": first, "last_train_loss": last, **more}
        runs = [changed(run, **columns) for run in experiment.runs]
        calls = asked(lambda: opening(dataclasses.replace(experiment, runs=runs)))
        ((_, found),) = calls["opening.step"]
        return found.remedy.course

    assert told(0.69, 0.05) == "learned"
    assert told(0.69, 0.5) == "falling"
    assert told(0.69, 0.688) == "flat"
    assert told(0.69, 0.688, unstable=True) == "unstable"


def test_all_runs_of_one_class_are_said_to_be(tmp_path):
    runs = [
        f"{PLACE}/transformers/{init}/lab/seed{seed}" for init in ("pretrained", "random") for seed in (0, 1)
    ]
    made = make_experiment(tmp_path, collapsed=runs, seeds=[0, 1], **FLAT)
    aggregate(made)
    found = unlearned(experiment_of(made))
    assert (found.kind, found.runs, found.remedy.one_class) == ("one_class", 4, True)
    assert list(found.splits.values()) == [4]
    assert "points" not in lines(experiment_of(made))["answer"]


def test_where_no_question_has_a_run_that_learned_the_count_says_so(tmp_path):
    options = {"accuracy": lambda run: 0.5, "seeds": [0, 1, 2], "datasets": ("x", "y"), **FLAT}
    calls = asked(lambda: make_whole(tmp_path, **options))
    assert calls["opening.lead"][0][0] == {"pretraining": {NOTHING_LEARNED: 2}}
    assert [one.findings[0].unlearned.runs for (one,) in calls["opening.answer"]] == [6, 6]
    ((one,),) = [found for (found,) in calls["opening.compared"]]
    assert (one.kind, one.withheld) == ("dataset", NOTHING_LEARNED)


def test_one_framework_whose_runs_learned_nothing_is_named(tmp_path):
    def level(run):
        return 0.5 if run.framework == "fairseq" else {"pretrained": 0.8, "random": 0.65}[run.init]

    options = {"seeds": [0, 1, 2], "sizes": FLAT["sizes"], "frameworks": ["fairseq", "transformers"]}
    made = make_experiment(tmp_path, accuracy=level, noise=0.01, **options)
    aggregate(made)
    found = experiment_of(made)
    assert decided(found) == {"fairseq": NOTHING_LEARNED, "transformers": "higher"}
    assert unlearned(found).runs == 6
    assert next_step(of_inits(found)[0]).kind == "unlearned"


def test_a_side_that_learned_nothing_is_told_beside_the_verdict(tmp_path):
    runs = [f"{PLACE}/transformers/random/lab/seed{seed}" for seed in (0, 1, 2)]
    options = {"collapsed": runs, "seeds": [0, 1, 2], **FLAT, "noise": 0.01}
    made = make_experiment(tmp_path, **options)
    aggregate(made)
    found = experiment_of(made)
    assert decided(found) == {"transformers": "higher"}
    ((_, number, bar),) = asked(lambda: grounds(found))["undecided.unlearned_side"]
    assert (number, bar.majority) == (3, 0.5)
    step = next_step(of_inits(found)[0])
    assert (step.kind, step.about[1].runs) == ("unlearned_side", 3)


def test_frameworks_that_both_learned_nothing_are_not_equivalent(tmp_path):
    folders = [
        f"{PLACE}/{framework}/{init}/lab/seed{seed}"
        for framework in ("fairseq", "transformers")
        for init in ("pretrained", "random")
        for seed in range(3)
    ]
    made = make_experiment(tmp_path, collapsed=folders, seeds=[0, 1, 2], sizes=FLAT["sizes"])
    calls = asked(lambda: write_whole(made))
    assert decided(experiment_of(made)) == {"fairseq": ONE_CLASS, "transformers": ONE_CLASS}
    ((verdicts, *_),) = calls["contrasts.equivalence_note"]
    assert "equivalent" not in verdicts


def test_a_tiny_test_split_is_blamed_before_the_runs(tmp_path):
    sizes = {"validation": 6, "test": 6}
    options = {"seeds": [0, 1], "accuracy": lambda run: 0.8, **FLAT, "sizes": sizes}
    made = make_experiment(tmp_path, **options)
    aggregate(made)
    found = unlearned(experiment_of(made))
    assert (found.kind, found.runs) == ("by_chance", 4)


def test_of_two_models_that_learned_nothing_neither_is_better(tmp_path):
    made = make_experiment(tmp_path, accuracy=lambda run: 0.5, seeds=[0, 1, 2], **FLAT)
    aggregate(made)
    (table,) = [
        block
        for block in sections_contrasts.pair_section(experiment_of(made))
        if getattr(block, "name", "") == "pairs_init"
    ]
    cells = dict(zip(table.header, table.rows[0], strict=True))
    assert (cells["pretrained better"], cells["random better"]) == (None, None)


def test_without_any_difference_runs_that_learned_nothing_are_told_first(tmp_path):
    one = {"inits": ["random"], "accuracy": lambda run: 0.5, "seeds": [0, 1, 2]}
    calls = asked(lambda: make_whole(tmp_path / "one", **one, **FLAT))
    assert [found.runs for found, _ in calls["opening.no_run_learned"]] == [3]
    assert [(kind, init) for kind, init, *_ in calls["opening.alone"]] == [("init", "random weights")]
    assert [kind for kind, _ in calls["opening.step"]] == ["unlearned"]
    calls = asked(lambda: make_whole(tmp_path / "two", datasets=("x", "y"), **one, **FLAT))
    assert [(found.runs, name) for found, name in calls["opening.no_run_learned"]] == [(3, "x"), (3, "y")]
    made = make_generation(
        tmp_path / "three",
        methods=("lora",),
        seeds=[0, 1],
        sizes={"validation": 20, "test": 40},
        loss=lambda run: 5.8,
    )
    calls = asked(lambda: write_whole(made))
    assert [found.runs for found, _ in calls["opening.no_run_learned"]] == [2]


# --- two seeds ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_seeds(tmp_path_factory):
    made = make_experiment(
        tmp_path_factory.mktemp("two"),
        seeds=[0, 1],
        sizes=FLAT["sizes"],
        models=("small", "large"),
        noise=0.002,
    )
    aggregate(made)
    return made


def test_two_seeds_bear_no_verdict_anywhere(two_seeds):
    rows = read_table(two_seeds.outputs["contrasts"])
    assert {row["no_verdict"] for row in rows} == {FEW_SEEDS}
    assert any(row["ci_low"] > 0 for row in rows if row["family"] == "init")
    assert {row["equivalence"] for row in rows if row["family"] == "framework"} == {"inconclusive"}
    calls = asked(lambda: write_report(two_seeds))
    assert {one.verdict for (said,) in calls["opening.answer"] for one in said.findings} == {FEW_SEEDS}
    assert calls["opening.counted"] == [("model", 0, 4, 0.95)]
    assert {kind for kind, _ in calls["opening.step"]} == {"few_seeds"}
    assert {one.kind for one, _ in calls["power.outcome"]} == {"few_seeds"}


def test_two_seeds_show_their_difference_and_what_is_missing(two_seeds):
    experiment = experiment_of(two_seeds)
    calls = asked(lambda: opening(experiment))
    assert calls["opening.lead"][0][0] == {"pretraining": {FEW_SEEDS: 4}}
    assert [line.kind for line in opening(experiment).others] == ["compared", "next"]
    assert calls["experiment.possible_range"]
    told = asked(lambda: grounds(experiment))["power.outcome"]
    assert {one.kind for one, _ in told} == {"few_seeds"}
    cells = [
        dict(zip(power_table(experiment).header, row, strict=True)) for row in power_table(experiment).rows
    ]
    assert {row["seeds needed"].text for row in cells} == {"no verdict"}
    assert {row["detectable now (points)"] for row in cells} == {None}


def test_tables_that_do_not_tell_whether_a_verdict_stands_are_refused(two_seeds):
    old = two_seeds.experiment / "old.csv"
    rows = read_table(two_seeds.outputs["contrasts"])
    for row in rows:
        del row["no_verdict"]
    write_table(old, list(rows[0]), rows)
    outputs = {**two_seeds.outputs, "contrasts": old}
    with pytest.raises(SeedbedError, match="not a table") as caught:
        sources.read({**outputs, "run_json": []}, two_seeds.plan.reporting(), {}, Experiment)
    assert "no_verdict" in str(caught.value)
    assert "let Snakemake make it again" in str(caught.value)


# --- a collapse ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_collapse(tmp_path_factory):
    """Ten seeds a side that differ by nothing, but for six collapsed runs of the random init."""
    collapsed = [f"{PLACE}/transformers/random/lab/seed{seed}" for seed in range(1, 7)]
    made = make_experiment(
        tmp_path_factory.mktemp("collapse"),
        seeds=list(range(10)),
        collapsed=collapsed,
        accuracy=lambda run: 0.8,
        **FLAT | {"noise": 0.01},
    )
    aggregate(made)
    return made


def test_the_difference_without_collapsed_runs_is_that_of_the_others(one_collapse):
    (row,) = read_table(one_collapse.outputs["contrasts"])
    sound = {
        init: [
            run["test_accuracy"]
            for run in read_table(one_collapse.outputs["runs"])
            if run["init"] == init and not run["collapsed"]
        ]
        for init in ("pretrained", "random")
    }
    assert [len(values) for values in sound.values()] == [10, 4]
    expected = statistics.mean(sound["pretrained"]) - statistics.mean(sound["random"])
    assert row["delta_without_collapsed"] == pytest.approx(expected, abs=1e-7)
    assert row["ci_low_without_collapsed"] < 0 < row["ci_high_without_collapsed"]
    assert row["delta"] > 0.1 > abs(expected)


def test_without_predictions_the_interval_without_collapsed_runs_is_welchs(one_collapse):
    runs, reporting = RunRow.read(one_collapse.outputs["runs"]), one_collapse.plan.reporting()
    (row,) = contrasts.contrast(runs, tables.summarise(runs, {}, reporting), reporting)
    a, b = (
        [run.value("test_accuracy") for run in runs if run.init == init and not run.collapsed]
        for init in ("pretrained", "random")
    )
    bounds = row["ci_low_without_collapsed"], row["ci_high_without_collapsed"]
    assert bounds == pytest.approx(statistics.welch_interval(a, b, 0.95))
    assert row["t_low"] > 0
    assert row["no_verdict"] == COLLAPSE


def test_a_collapse_makes_no_verdict(one_collapse):
    experiment = experiment_of(one_collapse)
    (row,) = experiment.contrasts
    assert row["ci_low"] > 0
    assert row["no_verdict"] == COLLAPSE
    assert decided(experiment) == {"transformers": COLLAPSE}
    assert list(lines(experiment)) == ["answer", "collapsed", "baseline", "next"]
    (((said,), _),) = asked(lambda: opening(experiment))["opening.collapsed"]
    assert [(rate.collapsed, rate.runs) for rate in said.rates] == [(0, 10), (6, 10)]
    step = next_step(of_inits(experiment)[0])
    assert (step.kind, step.about) == ("collapse", False)
    calls = asked(lambda: grounds(experiment))
    ((_, rates, *_),) = calls["undecided.collapse_rates"]
    assert [(rate.collapsed, rate.runs) for rate in rates] == [(0, 10), (6, 10)]
    ((without, _),) = calls["undecided.without_collapsed"]
    assert tuple(without.seeds) == (10, 4)
    assert calls["undecided.collapse_decides"] == [(False,)]
    told = asked(lambda: grounds(experiment))["power.outcome"]
    assert [one.kind for one, _ in told] == ["collapse"]


def test_a_verdict_that_would_rest_on_two_seeds_without_a_collapse_does_not_stand(tmp_path):
    made = make_experiment(
        tmp_path,
        seeds=[0, 1, 2],
        collapsed=[f"{PLACE}/transformers/random/lab/seed1"],
        accuracy=lambda run: {"pretrained": 0.9, "random": 0.6}[run.init],
        **FLAT | {"noise": 0.005},
    )
    calls = asked(lambda: write_whole(made))
    (row,) = read_table(made.outputs["contrasts"])
    assert row["ci_low"] > 0
    assert row["no_verdict"] == COLLAPSE
    assert decided(experiment_of(made)) == {"transformers": COLLAPSE}
    assert calls["undecided.collapse_decides"] == [(True,)]
    assert calls["opening.step"] == [("collapse", True)]


def test_a_difference_that_collapsed_runs_do_not_make_stands_and_is_told_both_ways(tmp_path):
    collapsed = [f"{PLACE}/transformers/random/lab/seed1"]
    options = {"seeds": [0, 1, 2, 3], "collapsed": collapsed, **FLAT, "noise": 0.005}
    calls = asked(lambda: make_whole(tmp_path, **options))
    assert [one.verdict for (said,) in calls["opening.answer"] for one in said.findings] == ["higher"]
    ((without, _),) = calls["undecided.without_collapsed"]
    (((said,), _),) = calls["opening.collapsed"]
    assert said.without == without
    assert 0.1 < without.delta < 0.2
    assert without.bounds[0] > 0


def test_of_gains_the_seeds_of_both_inits_are_left_and_of_a_sweep_the_chosen_recipes(tmp_path):
    bad = "x/small/transformers/{}/lab.learning_rate={}/seed{}"
    made = make_experiment(
        tmp_path,
        datasets=("x", "y"),
        seeds=list(range(6)),
        recipe={"sweep": {"learning_rate": [1e-5, 1e-4]}},
        accuracy=lambda run: {"pretrained": 0.8, "random": 0.7}[run.init] + 0.12 * ("0.0001" in run.recipe),
        collapsed=[bad.format("pretrained", "0.0001", 1), bad.format("random", "0.0001", 4)],
        **FLAT | {"noise": 0.005},
    )
    aggregate(made)
    runs = {
        (run["dataset"], run["init"], run["init_seed"]): run["test_accuracy"]
        for run in read_table(made.outputs["runs"])
        if run["recipe"] == "lab.learning_rate=0.0001"
    }
    best = [row for row in read_table(made.outputs["contrasts"]) if row["selection"] == "best"]
    chosen = "lab.learning_rate=0.0001"
    (row,) = [row for row in best if row["family"] == "init" and row["dataset"] == "x"]
    assert (row["recipe_a"], row["recipe_b"]) == (chosen, chosen)
    a = [runs["x", "pretrained", seed] for seed in (0, 2, 3, 4, 5)]
    b = [runs["x", "random", seed] for seed in (0, 1, 2, 3, 5)]
    assert row["delta_without_collapsed"] == pytest.approx(statistics.mean(a) - statistics.mean(b), abs=1e-7)
    assert row["ci_low_without_collapsed"] < row["delta_without_collapsed"] < row["ci_high_without_collapsed"]
    (row,) = [row for row in best if row["family"] == "dataset"]
    gains = {
        name: statistics.mean([runs[name, "pretrained", seed] - runs[name, "random", seed] for seed in seeds])
        for name, seeds in (("x", (0, 2, 3, 5)), ("y", range(6)))
    }
    assert row["delta_without_collapsed"] == pytest.approx(gains["x"] - gains["y"], abs=1e-6)


def test_a_collapse_on_one_split_alone_is_told_by_that_split(tmp_path):
    on = {
        f"{PLACE}/transformers/random/lab/seed0": "validation",
        f"{PLACE}/transformers/random/lab/seed1": "test",
    }
    made = make_experiment(tmp_path, seeds=[0, 1, 2], one_class_on=on, **FLAT)
    calls = asked(lambda: write_whole(made))
    flags = [
        (run["validation_all_same"], run["test_all_same"], run["collapsed"])
        for run in read_table(made.outputs["runs"])
        if run["init"] == "random"
    ]
    assert flags == [(True, False, True), (False, True, True), (False, False, False)]
    told = {values[0][-5:]: values[3] for values in calls["accuracy.scored_run"]}
    assert told == {"seed0": 0.67, "seed1": 0.5}
    ways = {(*splits, alone) for _, splits, alone, _ in calls["undecided.collapsed_how"]}
    assert ways == {("validation", True), ("test", True)}
    assert (["67.0†v", "50.0†", "67.0"], 0) in calls["accuracy.every_seed"]
    assert (2, 3, 1) in calls["accuracy.collapsed_seeds"]


# --- generation ---------------------------------------------------------------------------------------------


def test_where_no_run_is_better_than_the_untrained_model_the_first_sentence_says_so(tmp_path):
    made = make_generation(
        tmp_path,
        seeds=[0, 1, 2],
        sizes={"validation": 20, "test": 40},
        loss=lambda run: {"none": 3.6, "lora": 5.8, "full": 5.7}[run.method],
    )
    calls = asked(lambda: write_whole(made))
    found = unlearned(experiment_of(made), of_gains)
    assert (found.kind, found.runs) == ("plain", 6)
    assert all(3.6 <= loss < 3.7 for loss in found.bar.losses)
    assert "nats" not in lines(experiment_of(made))["answer"]
    assert all(one.withheld for (ones,) in calls["opening.compared"] for one in ones)


def test_a_method_that_learned_nothing_is_named_beside_one_that_did(tmp_path):
    made = make_generation(
        tmp_path,
        seeds=[0, 1, 2],
        sizes={"validation": 20, "test": 40},
        loss=lambda run: {"none": 3.6, "lora": 5.8, "full": 2.1}[run.method],
    )
    aggregate(made)
    experiment = experiment_of(made)
    assert decided(experiment, of_gains) == {"full fine-tuning": "higher", "LoRA": NOTHING_LEARNED}
    assert unlearned(experiment, of_gains).runs == 3
    calls = asked(lambda: grounds(experiment))
    assert [values[:2] for values in calls["undecided.unlearned_side"]] == [("with LoRA", 3)]


def test_an_adapter_against_full_fine_tuning_obeys_in_classification_too(tmp_path):
    made = make_experiment(
        tmp_path,
        inits=["pretrained"],
        seeds=[0, 1, 2],
        recipes={"adapted": {"method": "lora", "lora": {"task_type": "SEQ_CLS"}}},
        accuracy=lambda run: 0.5,
        **FLAT,
    )
    calls = asked(lambda: write_whole(made))
    ((found, _),) = calls["opening.no_run_learned"]
    assert (found.runs, found.bar.majority) == (6, 0.5)
    assert all(one.withheld for (ones,) in calls["opening.compared"] for one in ones)


# --- what is possible ---------------------------------------------------------------------------------------


def test_no_interval_of_shares_goes_beyond_what_is_possible(tmp_path):
    made = make_experiment(
        tmp_path,
        seeds=[0, 1],
        sizes={"validation": 6, "test": 6},
        noise=0.2,
        datasets=("x", "y"),
        leaked=["test-1"],
    )
    calls = asked(lambda: write_report(made))
    page = (made.experiment / "report.html").read_text(encoding="utf-8")
    rows = read_table(made.outputs["contrasts"])
    columns = [
        name for name in rows[0] if name.endswith(("_low", "_high")) or "_low_" in name or "_high_" in name
    ]
    kinds = {re.sub("_(low|high)(_without_collapsed)?$", "", name) for name in columns}
    assert kinds == {"ci", "given", "bootstrap", "t", "equivalence"}
    for row in rows:
        most = 2 if row["family"] == "dataset" else 1
        assert all(row[name] is None or abs(row[name]) <= most for name in columns)
    assert any(row[name] == 1 for row in rows for name in columns if row["family"] != "dataset")
    for row in read_table(made.outputs["summary"]):
        assert row["ci_low"] is None or 0 <= row["ci_low"] <= row["ci_high"] <= 1
        assert row["both_low"] is None or 0 <= row["both_low"] <= row["both_high"] <= 1
    shown = [float(text.replace("−", "-")) for text in re.findall(r"[+−]\d+\.\d+(?= to | and |\))", page)]
    assert max(map(abs, shown)) <= 200
    assert ("accuracy", (-1, 1), True) in calls["experiment.possible_range"]


def test_the_interval_of_a_loss_does_not_go_below_zero(tmp_path):
    made = make_generation(
        tmp_path,
        methods=("none", "lora"),
        seeds=[0, 1],
        sizes={"validation": 20, "test": 40},
        loss=lambda run: 0.05 + 2.0 * run.init_seed,
        noise=0.0,
    )
    rows = [row for row in made.aggregate()["summary"] if row["metric"] == "loss"]
    for name in ("ci_low", "both_low"):
        lows = [row[name] for row in rows]
        assert 0 in lows
        assert min(low for low in lows if low is not None) == 0


def test_seed_marks_tell_validation_from_test():
    run = run_row(collapsed=True, validation_all_same=True, test_all_same=False, not_above_majority=True)
    assert sections_accuracy.seed_mark(TASKS[DEFAULT], run) == "†v‡"
    assert sections_accuracy.seed_mark(TASKS[DEFAULT], changed(run, test_all_same=True)) == "†"
