"""The summary: each section from the tables behind it; the tables for other documents; numbers in words."""

import csv
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from builders_report import aggregate, asked, experiment_of, make_whole, read, write_summary, write_whole
from synthetic import TRAINING, edit_csv, edit_json, learning_rate_levels, make_experiment

from seedbed.core import bag_of_words, words
from seedbed.core.rows import on_test_set, read_table
from seedbed.data import duplicates
from seedbed.report import (
    export,
    parts,
    provenance,
    sections_accuracy,
    sections_contrasts,
    sections_models,
    sizes,
    undecided,
)
from seedbed.report.documents.blocks import Cell, Table, cell_text
from seedbed.report.opening import compared, opening

SIZES = {"validation": 200, "test": 400}
# what the caption of a printed table may explain
EXPLAINED = ("multi_bootstrap", "p_of_interval", "own_best", "verdicts")
SWEEP = {"sweep": {"learning_rate": [1e-5, 1e-4, 3e-4]}}


def levels(pretrained: float, random: float):
    return lambda run: {"pretrained": pretrained, "random": random}[run.init]


def section(text: str, title: str) -> str:
    """The part of a document below a heading of level 2, or of level 3 within a section."""
    mark, rest = re.split(rf"^(###?) {re.escape(title)}\n", text, maxsplit=1, flags=re.MULTILINE)[1:]
    return re.split(rf"^#{{2,{len(mark)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def table_after(text: str, caption: str) -> list[dict[str, str]]:
    """The rows of the table below a caption that begins so."""
    lines = text.split(f"\n{caption}")[1].split("\n\n")[1].splitlines()
    header, _, *rows = map(cells, lines)
    return [dict(zip(header, row, strict=True)) for row in rows]


def shown(share: float, sd: float) -> str:
    """A mean and its sd as a cell shows it."""
    return words.mean_sd("accuracy", share, sd).replace("%", "")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    made = make_experiment(
        tmp_path_factory.mktemp("made"),
        accuracy=lambda run: 0.52 if run.init == "random" and run.init_seed == 0 else levels(0.8, 0.7)(run),
        sizes=SIZES,
        collapsed=["reviews/small/fairseq/random/lab/seed1"],
        diverged=["reviews/small/transformers/random/lab/seed2"],
    )
    edit_json(made.folders[-1] / "run.json", lambda document: document["versions"].update(torch="2.12.0"))
    return made


@pytest.fixture(scope="module")
def text(made) -> str:
    return write_whole(made)


def test_the_summary_is_one_page_with_opening_scores_warnings_and_places(made):
    text = write_summary(made)
    assert len(text.splitlines()) <= 50
    title, answer, *_ = text.split("\n\n")
    assert title.startswith("# ")
    assert "`synthetic`" in title
    found = opening(experiment_of(made)).groups[0].lines
    assert answer == "\n".join(f"- **{line.label}:** {line.text}" for line in found)
    rows = table_after(text, "Test accuracy, mean ± sd over 3 seeds, 400 test texts; majority class 50.0%.")
    assert [(row["framework"], row["starts from"]) for row in rows] == [
        (framework, start)
        for framework in ("fairseq", "Transformers")
        for start in ("the checkpoint", "random weights")
    ]
    assert re.fullmatch(r"5\d\.\d‡, 50\.0†, [67]\d\.\d", rows[1]["every seed (%)"])
    warnings = section(text, "Warnings").strip().splitlines()
    assert [line.split(" ", 3)[1:3] for line in warnings[:2]] == [["2", "runs"], ["2", "runs"]]
    assert all(": try " in line or ". Try " in line for line in warnings[:2])
    assert "(report.html)" in section(text, "Files beside this one")


def test_tables_of_sizes_are_named_where_there_are_any(tmp_path, made):
    asked = {"sizes": SIZES, "seeds": [0], "frameworks": ["transformers"], "train_sizes": [20, "all"]}
    names = ("(learning_curves.csv)", "(label_worth.csv)")
    listed = section(write_summary(make_experiment(tmp_path, **asked)), "Files beside this one")
    assert [name in listed for name in names] == [True, True]
    listed = section(write_summary(made), "Files beside this one")
    assert [name in listed for name in names] == [False, False]


def test_without_a_warning_there_is_no_such_section(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, seeds=[0, 1])
    assert "## Warnings" not in write_summary(made)


def test_accuracies_show_every_seed_and_mark_the_odd_ones(made, text):
    rows = table_after(text, "Test accuracy: reviews, small.")
    row = next(row for row in rows if (row["framework"], row["init"]) == ("fairseq", "random"))
    assert re.fullmatch(r"\d\d\.\d ± \d+\.\d", row["test accuracy (%)"])
    summary = next(r for r in read_table(made.outputs["summary"]) if r["init"] == "random")
    assert row["binomial standard error (points)"] == f"{100 * summary['binomial_se']:.1f}"
    assert re.fullmatch(r"5\d\.\d‡, 50\.0†, [67]\d\.\d", row["every seed (%)"])
    assert row["collapsed"] == "1 of 3"
    assert re.fullmatch(r"6\d\.\d ± \d+\.\d", row["test accuracy without collapsed (%)"])
    assert list(row)[-1] == "every seed (%)"


def test_medians_and_ranges_stand_in_a_table_of_their_own(made, text):
    line = table_after(text, "More statistics over seeds: reviews, small.")[0]
    row = read_table(made.outputs["summary"])[0]
    assert line["median (%)"] == words.percent(row["median"]).removesuffix("%")
    # of three seeds it is the mean
    assert row["iqm"] is None
    assert "interquartile mean (%)" not in line
    assert line["min to max (%)"] == words.value_range("accuracy", row["min"], row["max"]).replace("%", "")


def test_a_baseline_is_held_against_the_recipes_that_the_table_leaves_out(tmp_path):
    made = make_experiment(
        tmp_path, accuracy=levels_of_a_sweep, recipe=SWEEP, sizes=SIZES, frameworks=["fairseq"]
    )
    calls = asked(lambda: write_whole(made))
    rows = [row for row in read_table(made.outputs["summary"]) if row["selection"] == "equal"]
    below = sum(row["mean"] < row["bag_of_words"] for row in rows)
    assert 0 < below < 6
    assert {(found.below, found.means) for (found,) in calls["accuracy.baselines"]} == {(below, 6)}


def test_runs_of_each_size_are_held_against_the_bag_of_this_size(tmp_path):
    levels = {"lab.train_size=20": 0.6, "lab": 0.75}  # between the bags: above the small one, below the other
    made = make_experiment(
        tmp_path,
        accuracy=lambda run: levels[run.recipe],
        sizes=SIZES,
        frameworks=["transformers"],
        inits=["pretrained"],
        seeds=[0, 1],
        train_sizes=[20, "all"],
    )
    calls = asked(lambda: write_whole(made))
    bags = {row["train_size"]: row["bag_of_words"] for row in read_table(made.outputs["summary"])}
    assert bags[20] < 0.58 < 0.77 < bags[TRAINING]
    ((found,),) = calls["accuracy.baselines"]
    assert (found.bag, found.bags, found.below, found.means) == (None, bags, 1, 2)
    told = [(of_size.size, of_size.bag, bool(of_size.below)) for (of_size,) in calls["opening.baseline"]]
    assert told == [("20 training texts", bags[20], True), ("all training texts", bags[TRAINING], False)]


def test_the_opening_of_sizes_says_where_the_checkpoint_is_ahead_of_the_bag_of_words(tmp_path):
    levels = {"fairseq": (0.68, 0.68), "transformers": (0.66, 0.92)}  # the bag: 0.54 and 0.80

    def level(run):
        return 0.6 if run.init == "random" else levels[run.framework][run.recipe == "lab"]

    made = make_experiment(
        tmp_path, accuracy=level, noise=0.004, sizes=SIZES, seeds=[0, 1, 2], train_sizes=[20, "all"],
    )  # fmt: skip
    calls = asked(lambda: write_whole(made))
    rows = [row for row in read_table(made.outputs["label_worth"]) if row["family"] == "baseline"]
    (found,) = calls["sizes.baseline"]
    name, size, framework, needed, leads = found[:5]
    assert (name, size, framework) == ("bag of words", TRAINING, "fairseq")
    worth = {row["a"]: row["labels"] for row in rows if row["train_size"] == TRAINING}
    assert [(one.of, one.number) for one in needed] == [
        ("random", f"{worth['fairseq/random']:.0f}"),
        ("pretrained", f"{worth['fairseq/pretrained']:.0f}"),
    ]
    (behind,) = (row for row in rows if (row["kind"], row["a"]) == ("passed", "fairseq/pretrained"))
    assert [(lead.framework, lead.side, lead.everywhere) for lead in leads] == [
        ("fairseq", sizes.BEHIND, False),
        ("transformers", sizes.AHEAD, True),
    ]
    assert leads[0].start.number == f"{behind['labels']:.0f}"
    assert leads[0].start.interval == f"{behind['low']:.0f} to {behind['high']:.0f}"


def test_the_linear_probe_of_each_size_stands_beside_the_scores(tmp_path):
    asked_for = {"sizes": SIZES, "frameworks": ["transformers"], "seeds": [0, 1], "train_sizes": [20, "all"]}
    made = make_experiment(tmp_path / "checkpoint", **asked_for)
    text = write_whole(made)
    probes = {row["train_size"]: row["linear_probe"] for row in read_table(made.outputs["learning_curves"])}
    (table,) = re.findall(r"^\| texts (?:.*\n)*?(?=\n)", text, re.M)
    header, _, *rows = map(cells, table.splitlines())
    place = header.index("probe (%)")
    assert {int(row[0]): float(row[place]) for row in rows} == {
        size: pytest.approx(100 * probe, abs=0.05) for size, probe in probes.items()
    }
    alone = make_experiment(tmp_path / "random", inits=["random"], **asked_for)
    assert "linear probe" not in write_whole(alone)


def test_runs_that_learned_nothing_are_beside_the_bag_of_their_size(tmp_path):
    made = make_experiment(
        tmp_path, accuracy=lambda run: 0.5, sizes=SIZES, frameworks=["transformers"], seeds=[0, 1],
        train_sizes=[20, "all"],
    )  # fmt: skip

    def swap(rows):
        for row in rows:
            if int(row["train_size"]) == 20:  # half right becomes half wrong, hence below the majority class
                row["prediction"] = {"negative": "positive", "positive": "negative"}[row["prediction"]]
                row["probability_negative"], row["probability_positive"] = (
                    row["probability_positive"],
                    row["probability_negative"],
                )

    edit_csv(made.bags[0] / "predictions.csv", swap)
    aggregate(made)
    found = experiment_of(made)
    weak = {
        size: undecided.unlearned(
            found, [run for run in found.runs if run.train_size == size], "all"
        ).weak_bag
        for size in (20, TRAINING)
    }
    assert weak == {20: pytest.approx(1 - 0.5425, abs=0.002), TRAINING: None}


def test_a_string_that_texts_share_is_shown_as_it_is(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, frameworks=["fairseq"], seeds=[0])
    shared = "[more](http://example.org) <b>"
    row = {"check": f"shared text: {shared}", "count": 216, "share": 0.54}
    row |= {"kind": "shared text", "text": shared}
    edit_csv(made.experiment / "data_audit.csv", lambda rows: rows.append({**rows[0], **row}))
    # as code, in which nothing is markup
    assert re.search(rf"^- `reviews: [^`]*{re.escape(shared)}[^`]*`$", write_whole(made), re.M)


def test_a_bag_of_characters_is_told(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, frameworks=["fairseq"], seeds=[0, 1])
    path = Path(made.plan.per_dataset("bag_of_words.csv")[0])
    row = {"split": "train", "metric": "features", "value": "characters"}
    edit_csv(path, lambda rows: rows.insert(0, row))
    ((found,),) = asked(lambda: write_whole(made))["accuracy.baselines"]
    assert (found.bag, found.below, found.means) == (pytest.approx(0.825), 2, 2)
    assert found.bag_name == bag_of_words.WORDS.say("name", True)


def test_a_bag_that_is_left_out_is_told(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, frameworks=["fairseq"], seeds=[0, 1])
    path = Path(made.plan.per_dataset("bag_of_words.csv")[0])
    why = "all training texts are empty"
    edit_csv(path, lambda rows: rows.insert(0, {"split": "train", "metric": "left_out", "value": why}))
    calls = asked(lambda: write_whole(made))
    assert ("reviews", why, "") in calls["bag_of_words.left_out"]
    text = write_whole(made)
    assert "nan" not in text.lower().split()


def levels_of_a_sweep(run):
    """The pretrained init beats the bag of words, at each but its first learning rate."""
    return 0.7 if run.init == "random" or run.recipe.endswith("1e-05") else 0.95


def test_of_many_seeds_the_first_ones_are_shown(tmp_path):
    text = make_whole(tmp_path, sizes=SIZES, seeds=list(range(12)), frameworks=["fairseq"])
    row = table_after(text, "Test accuracy: reviews, small.")[-1]
    assert row["every seed (%)"].count(",") == 9
    assert row["every seed (%)"].endswith(" and 2 more in runs.csv")


def test_warnings_name_the_runs(made, text):
    calls = asked(lambda: sections_accuracy.warning_section(experiment_of(made)))
    assert [values[0] for values in calls["accuracy.collapsed"]] == [2]
    told = {values[0]: values[3] for values in calls["accuracy.scored_run"]}
    assert told == {
        "reviews/small/fairseq/random/lab/seed1": 0.5,
        "reviews/small/transformers/random/lab/seed2": 0.0,
    }
    how = {
        (*splits, alone) for diverged, splits, alone, _ in calls["undecided.collapsed_how"] if not diverged
    }
    assert how == {("validation", "test", False)}
    assert [values[0] for values in calls["accuracy.not_above_majority"]] == [2]
    weak = {folder for folder, *_ in calls["accuracy.weak_run"]}
    assert "reviews/small/fairseq/random/lab/seed0" in weak


def test_sound_runs_have_no_warnings(tmp_path):
    assert "## Warnings" not in make_whole(tmp_path, sizes=SIZES, seeds=[0, 1])


def test_differences_bear_both_intervals_p_and_seeds(made, text):
    found = section(text, "Differences in test accuracy")
    row = next(row for row in read_table(made.outputs["contrasts"]) if row["family"] == "init")
    told = table_after(found, "Pretrained minus random: difference")[0]
    assert told["framework"] == "fairseq"
    assert told["difference (points)"] == words.points(row["delta"])
    assert told["95% interval (points)"] == words.difference_range("accuracy", row["ci_low"], row["ci_high"])
    over_seeds = words.difference_range("accuracy", max(-1, row["t_low"]), min(1, row["t_high"]))
    assert told["interval over seeds alone (points)"] == over_seeds
    assert (told["p"], told["p, Holm"]) == tuple(words.p_text(row[key]) for key in ("p_value", "p_holm"))


def test_intervals_narrower_than_those_over_seeds_alone_are_counted_and_explained(made, text):
    (row, other) = read_table(made.outputs["contrasts"])[:2]
    row |= {"ci_low": 0.01, "ci_high": 0.03, "t_low": 0.0, "t_high": 0.05}
    other |= {"ci_low": 0.0, "ci_high": 0.05, "t_low": 0.01, "t_high": 0.03}
    for rows, narrower in (([row, other], 1), ([other], 0)):
        found, other = read(made)
        changed = replace(found, contrasts=rows)
        calls = asked(
            lambda changed=changed, other=other: sections_contrasts.difference_section(changed, other)
        )
        assert calls["contrasts.note"][0][0].narrower == narrower


def test_intervals_are_cut_where_no_difference_can_be(text):
    assert not re.search(r"[+−]1\d\d\.[1-9] ", section(text, "Differences in test accuracy"))


def test_the_families_of_models_and_datasets_name_their_contrast(tmp_path):
    made = make_experiment(
        tmp_path, sizes=SIZES, datasets=("books", "music"), models=("small", "large"), frameworks=["fairseq"]
    )
    found = section(write_whole(made), "Differences in test accuracy")
    assert "| books | pretrained | " in found
    gains = next(table for table in found.split("### ") if table.startswith("Gain of pretraining"))
    assert "| dataset |" not in gains
    assert "framework fairseq; contrast small − large; recipe lab; seeds 3 pairs." in found
    assert "contrast gain on books − gain on music; recipe lab; seeds 3 and 3, unpaired." in found


def test_equivalence_is_counted_and_inconclusive_is_not_the_same(made, text):
    found = section(text, "Are the frameworks equivalent?")
    rows = [row for row in read_table(made.outputs["contrasts"]) if row["family"] == "framework"]
    told = [row["equivalence"] for row in rows]
    lines = table_after(found, "fairseq minus Transformers: equivalence")
    for row, line in zip(rows, lines, strict=True):
        interval = words.difference_range("accuracy", row["equivalence_low"], row["equivalence_high"])
        assert line["90% interval of the test (points)"] == interval
        assert line["p, equivalence"] == words.p_text(row["p_equivalence"])
        assert line["p, Holm"] == words.p_text(row["p_equivalence_holm"])
        assert line["verdict"] == row["equivalence"]
    calls = asked(lambda: sections_contrasts.equivalence_section(experiment_of(made)))
    ((verdicts, total, *_),) = calls["contrasts.equivalence_note"]
    assert (dict(verdicts), total) == (dict(Counter(told)), len(told))


def test_one_framework_has_no_equivalence(tmp_path):
    calls = asked(lambda: make_whole(tmp_path, sizes=SIZES, seeds=[0, 1], frameworks=["fairseq"]))
    assert not {"contrasts.equivalence_note", "answer.equivalence"} & set(calls)


def test_pairs_of_runs_count_what_mcnemar_decides(made, text):
    found = section(text, "Pairs of runs")
    pairs = [
        row
        for row in read_table(made.outputs["pairs"])
        if row["a"] == "fairseq/pretrained" and row["b"] == "fairseq/random"
    ]
    better = sum(row["p_holm"] < 0.05 and row["only_a_right"] > row["only_b_right"] for row in pairs)
    line = table_after(found, "Pretrained minus random: McNemar's test")[0]
    share = sum(row["only_a_right"] / row["examples"] for row in pairs) / 3
    assert line["only pretrained right (%)"] == words.percent(share).removesuffix("%")
    assert line["pretrained better"] == f"{better} of 3"


def test_a_pair_is_better_on_the_side_that_is_right_more_often():
    pair = {"family": "init", "a": "fairseq/pretrained", "selection": "equal"}
    pair |= {"recipe_a": "lab", "recipe_b": "lab"}
    counts = [(30, 5, 0.01), (5, 30, 0.02), (5, 30, 0.04), (12, 11, 0.9)]
    pairs = [
        pair | {"examples": 100, "only_a_right": a, "only_b_right": b, "p_holm": p} for a, b, p in counts
    ]
    line = sections_contrasts.pair_line({"lab": {"swept": {}, "family": "lab"}}, pairs, 0.05)
    assert [cell_text(cell) for cell in line] == ["fairseq", "lab", "4", "13.0", "19.0", "1 of 4", "2 of 4"]


def test_churn_and_the_examples_that_no_run_gets_right(made, text):
    found = section(text, "What the seed changes")
    row = read_table(made.outputs["churn"])[0]
    line = table_after(found, "Predictions over the seeds")[0]
    assert (line["framework"], line["init"]) == ("fairseq", "pretrained")
    assert line["changed (%)"] == words.percent(row["changed_share"]).removesuffix("%")
    assert line["two seeds disagree (%)"] == words.percent(row["mean_disagreement"]).removesuffix("%")
    hard = read_table(made.outputs["never_right"])
    calls = asked(lambda: write_whole(made))
    assert calls["predictions.never_right"] == [("reviews", len(hard), 400, 10)]


def test_crossed_seeds_have_their_variance_decomposed(tmp_path):
    seeds = [{"init": i, "data": j} for i in range(2) for j in range(2)]
    text = make_whole(tmp_path, sizes=SIZES, seeds=seeds, frameworks=["fairseq"])
    found = section(text, "Init seed or order of the data?")
    assert "| random | data seed | 2 | 1 |" in found


def test_where_seeds_are_not_crossed_it_is_said_that_both_kinds_are_not_told_apart(made, text):
    assert asked(lambda: write_whole(made))["predictions.not_crossed"] == [(2,)]
    assert "|" not in section(text, "Init seed or order of the data?")


def test_the_table_of_a_sweep_marks_what_is_best_on_validation(tmp_path):
    made = make_experiment(tmp_path, accuracy=learning_rate_levels, noise=0.002, recipe=SWEEP, sizes=SIZES)
    text = write_whole(made)
    found = section(text, "Each side at its best: the sweep")
    assert found.count("| **") == 4
    rows = read_table(made.outputs["summary"])
    shares = [row["chosen_share"] for row in rows if row["selection"] == "equal"]
    line = table_after(found, "How often validation chooses each recipe")[0]
    assert line["fairseq, pretrained (%)"] == words.percent(shares[0]).removesuffix("%")
    best = next(row for row in rows if row["selection"] == "best")
    validation = words.percent(best["validation_mean"]).removesuffix("%")
    assert f"**{shown(best['mean'], best['sd'])} ({validation})**" in found
    first = read_table(made.outputs["expected_validation"])[0]
    assert f"| 1 | {shown(first['expected'], first['sd'])} |" in found


def test_both_sides_with_the_same_best_recipe_are_told_so():
    recipes = {name: {"swept": {}, "family": name} for name in "rs"}
    row = {"family": "init", "selection": "best", "recipe_a": "r", "recipe_b": "r"}
    assert sections_contrasts.contrast_recipe(recipes, row) == "own best: r (both)"
    assert sections_contrasts.contrast_recipe(recipes, row | {"recipe_b": "s"}) == "own best: r / s"
    gains = row | {"recipe_a": "r/s"}
    assert sections_contrasts.contrast_recipe(recipes, gains) == "own best: r and s / r"


def test_a_part_of_an_error_that_is_estimated_at_zero_is_not_printed_as_zero(made, text):
    rows = [row | {"se_examples": 0} for row in read_table(made.outputs["contrasts"])[:1]]
    found, other = read(made)
    experiment = replace(found, contrasts=rows)
    blocks = sections_contrasts.difference_section(experiment, other, full=True)
    _, errors = [block for block in blocks if isinstance(block, Table)]
    assert [cell_text(cell) for cell in errors.rows[0]].count("not above 0") == 1


def test_parity_parameters_time_and_versions(text):
    time = table_after(text, "Time and memory of a run.")[0]
    assert (time["framework"], time["runs"], time["start-up (s)"]) == ("fairseq", "6", "6.1")
    assert float(time["all runs (hours)"]) == pytest.approx(6 * float(time["total (s)"]) / 3600, abs=0.006)
    assert "| torch | 2.13.0 and 2.12.0 |" in text
    assert provenance.WORDS.say("mixed") in text


def test_a_difference_of_parameters_shouts():
    row = {"model": "m", "component": "head", "formula": "d + 1", "expected": 513, "counted": 512}
    (table,) = (
        block for block in sections_models.parameter_section({"m": [row]}) if isinstance(block, Table)
    )
    assert cell_text(table.rows[0][-1]) == "512 (differs)"


def test_what_is_not_known_is_not_printed_as_a_number(text):
    assert "None" not in text
    assert re.search(r"\bnan\b", text) is None


def test_one_seed_has_differences_without_intervals(tmp_path):
    text = make_whole(tmp_path, sizes=SIZES, seeds=[0], frameworks=["fairseq"])
    (line,) = table_after(
        section(text, "Differences in test accuracy"), "Pretrained minus random: difference"
    )
    told = list(line)
    without = told[told.index("95% interval (points)") : told.index("fewer errors (%)")]
    assert [line[name] for name in without] == ["–"] * 4


def test_one_init_has_no_difference(tmp_path):
    options = {"seeds": [0, 1], "inits": ["random"], "frameworks": ["fairseq"]}
    calls = asked(lambda: make_whole(tmp_path, sizes=SIZES, **options))
    assert not {"contrasts.caption", "power.question"} & set(calls)


# --- leaks and data ---


def test_leaks_are_shown_with_and_without(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, leaked=["test-1", "test-2", "test-30"])
    calls = asked(lambda: write_whole(made))
    text = write_whole(made)
    found = section(text, "With and without leaked test examples")
    ((leak,),) = calls["data.leak"]
    assert (leak.dataset, leak.leaked, leak.tested, leak.dropped) == ("reviews", 3, 400, False)
    told = {name: read_table(path) for name, path in made.outputs.items()}
    lines = table_after(found, "Test accuracy with and without leaked")
    for whole, clean, line in zip(
        on_test_set(told["summary"]), on_test_set(told["summary"], "without leaks"), lines, strict=True
    ):
        assert line["accuracy on all test examples (%)"] == shown(whole["mean"], whole["sd"])
        assert line["accuracy without leaks (%)"] == shown(clean["mean"], clean["sd"])
        assert line["change (points)"] == words.points(clean["mean"] - whole["mean"], 2)
    clean = [row for row in on_test_set(told["contrasts"], "without leaks") if row["family"] == "init"]
    assert [values[-1] for values in calls["data.leak_difference"]] == [
        (f"{words.points(row['delta'])} points", (row["ci_low"], row["ci_high"])) for row in clean
    ]
    # the answer and the tables above stay those of the whole test split
    clean = make_whole(tmp_path / "clean", sizes=SIZES)
    assert section(text, "Test accuracy") == section(clean, "Test accuracy")


def test_leaks_of_one_of_several_datasets_bear_its_name(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, datasets=("reviews", "music"), seeds=[0, 1])
    duplicates.write_duplicates(made.plan.per_dataset("duplicates.csv")[1], leak_rows("test-7"))
    edit_csv(
        Path(made.plan.per_dataset("bag_of_words.csv")[1]),
        lambda rows: rows.append({"split": "test", "metric": "accuracy_without_leaks", "value": "0.8"}),
    )
    calls = asked(lambda: write_whole(made))
    assert [(leak.dataset, leak.leaked) for (leak,) in calls["data.leak"]] == [("music", 1)]
    text = write_whole(made)
    found = section(text, "With and without leaked test examples")
    assert "### music, small" in found
    assert "reviews" not in found


def test_dropped_leaks_are_said(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, leaked=["test-7"], seeds=[0, 1])
    made.plan.config["datasets"]["reviews"]["drop_leaks"] = True
    ((leak,),) = asked(lambda: write_whole(made))["data.leak"]
    assert leak.dropped


def test_where_all_leaked_the_summary_says_so(tmp_path):
    every = [f"test-{number}" for number in range(SIZES["test"])]
    calls = asked(lambda: make_whole(tmp_path, sizes=SIZES, leaked=every, seeds=[0, 1]))
    ((leak,),) = calls["data.leak"]
    assert leak.leaked == leak.tested == 400


def leak_rows(*names):
    return [
        {"split": "test", "example": name, "with_split": "train", "with_example": "train-0"}
        | {"kind": "exact", "similarity": 1.0, "same_label": True}
        for name in names
    ]


def test_no_leak_no_section(text):
    assert "## With and without leaked" not in text


# --- tables for other documents ---


@pytest.fixture(scope="module")
def exported(made, text):
    formats = [f"{name}_{ending}" for name in ("summary", "contrasts") for ending in ("csv", "md", "tex")]
    outputs = {name: made.experiment / "tables" / name.replace("_", ".") for name in formats}
    export.write_tables(made.outputs["summary"], made.outputs["contrasts"], made.plan.reporting(), outputs)
    return {name: path.read_text(encoding="utf-8") for name, path in outputs.items()}


def test_exported_numbers_have_the_unit_of_their_header(made, exported):
    rows = list(csv.DictReader(exported["contrasts_csv"].splitlines()))
    for row, fraction in zip(rows, read_table(made.outputs["contrasts"]), strict=True):
        assert float(row["difference (points)"]) == pytest.approx(100 * fraction["delta"], abs=1e-5)
        assert float(row["p"]) == pytest.approx(fraction["p_value"])
        assert float(row["exact p"]) == pytest.approx(fraction["p_exact"])
        if fraction["equivalence_low"] is not None:
            low = float(row["90% equivalence interval, low (points)"])
            assert low == pytest.approx(100 * fraction["equivalence_low"], abs=1e-5)
    summary = next(csv.DictReader(exported["summary_csv"].splitlines()))
    first = read_table(made.outputs["summary"])[0]
    assert float(summary["mean test accuracy (%)"]) == pytest.approx(100 * first["mean"], abs=1e-5)
    assert float(summary["sample sd (points)"]) == pytest.approx(100 * first["sd"], abs=1e-5)


def test_every_exported_accuracy_and_difference_names_its_unit(exported):
    header = next(csv.reader(exported["summary_csv"].splitlines()))
    fractions = ("mean", "sd", "interval", "median", "min", "max", "best", "error", "ECE", "class", "words")
    for name in header:
        if any(word in name for word in fractions):
            assert re.search(r"\((%|points)\)$", name), name


def test_exported_markdown_and_latex_hold_the_same_numbers(exported):
    first = next(csv.DictReader(exported["summary_csv"].splitlines()))
    mean, sd = (
        words.points(float(first[name]) / 100).removeprefix("+")
        for name in ("mean test accuracy (%)", "sample sd (points)")
    )
    assert f"| {mean} |" in exported["summary_md"]
    assert f" & {mean} $\\pm$ {sd} & " in exported["summary_tex"]
    assert r"\toprule" in exported["summary_tex"]
    assert r"test accuracy (\%)" in exported["summary_tex"]


def test_exported_numbers_have_no_digits_that_binary_fractions_add(exported):
    assert not re.search(r"\d\.0*[1-9]\d{10}", exported["contrasts_csv"] + exported["summary_csv"])


def test_a_column_with_one_value_goes_into_the_caption_and_an_empty_one_away():
    rows = [["books", "a", Cell("1.0", 1.0), None], ["books", "b", Cell("1.0", 1.0), None]]
    short = export.shorten(Table("t", ["dataset", "init", "sd (points)", "ECE"], rows, "Caption.", (2, 3)))
    assert list(short.header) == ["init", "sd (points)"]
    assert short.caption.startswith("Caption. ")
    assert short.caption.endswith(": dataset books.")
    assert list(short.right) == [1]


def test_latex_has_a_table_a_family_with_the_columns_that_fit_on_a_page(made, exported):
    _, *printed = exported["contrasts_tex"].split(r"\begin{table}")
    headers = [table.split(r"\toprule")[1].split("\n")[1].split(" & ") for table in printed]
    assert [r"\label{tab:contrasts_init}" in table for table in printed] == [True, False]
    assert all(len(header) <= 10 for header in headers)
    assert ["margin (points)" in header for header in headers] == [False, True]
    row = next(row for row in read_table(made.outputs["contrasts"]) if row["family"] == "init")
    assert f" & {words.points(row['delta'])} & ".replace("−", "$-$") in printed[0]
    rows = read_table(made.outputs["contrasts"])
    calls = asked(lambda: export.printed_contrasts(rows, made.plan.reporting()))
    explained = {name: len(calls.get(f"export.{name}", [])) for name in EXPLAINED}
    assert explained == {"multi_bootstrap": 2, "p_of_interval": 2, "own_best": 0, "verdicts": 1}
    assert "ASO" not in exported["contrasts_tex"]
    assert "ASO" in exported["contrasts_md"]
    assert "dataset of b" not in exported["contrasts_md"]


def test_latex_keeps_an_equal_recipe_that_is_also_both_sides_own_best(tmp_path):
    made = make_experiment(
        tmp_path, accuracy=levels_of_a_sweep, recipe=SWEEP, sizes=SIZES, frameworks=["fairseq"]
    )
    write_whole(made)
    rows = read_table(made.outputs["contrasts"])
    reporting, made_tables = made.plan.reporting(), []
    calls = asked(lambda: made_tables.extend(export.printed_contrasts(rows, reporting)))
    table, _ = made_tables
    rows = [row for row in rows if row["family"] == "init"]
    assert len(table.rows) == len(rows)
    recipe, interval = (list(table.header).index(name) for name in ("recipe", "95% interval (points)"))
    told = {cell_text(row[recipe]): cell_text(row[interval]) for row in table.rows}
    for row in rows:
        name = sections_contrasts.contrast_recipe(made.plan.reporting()["recipes"], row)
        assert told[name] == words.difference_range("accuracy", row["ci_low"], row["ci_high"])
    assert "export.own_best" in calls


def test_a_missing_value_is_an_empty_cell_and_never_zero(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, seeds=[0], frameworks=["fairseq"])
    write_whole(made)
    table = export.make_table(
        "contrasts", export.contrast_columns("95%", "90%"), read_table(made.outputs["contrasts"]), ""
    )
    row = next(csv.DictReader(export.to_csv(table).splitlines()))
    assert row["exact p"] == row["95% Multi-Bootstrap, low (points)"] == ""
    assert row["difference (points)"] != ""


def test_sources_hold_every_file(made, text):
    _, found = read(made)
    assert len(found.documents) == 12
    assert set(found.parameters) == {"small"}
    assert [place[:2] for place in found.parity] == [("reviews", "small")]


# --- cells ---


def test_a_cell_below_a_unit_bears_none_and_copies_each_of_its_numbers():
    header, cell = parts.mean_header("test accuracy"), parts.mean_cell(0.785, 0.0072)
    assert (cell_text(cell), cell.value, cell.copied) == ("78.5 ± 0.7", 78.5, (78.5, pytest.approx(0.72)))
    assert header.copied == ("mean test accuracy (%)", "sd of test accuracy (points)")
    alone = parts.mean_cell(0.785, None)
    assert (cell_text(alone), alone.copied) == ("78.5", (78.5, None))
    interval = parts.interval_cell(-0.004, 1.2)
    assert (cell_text(interval), interval.copied) == ("−0.4 to +100.0", (-0.4, 100.0))
    assert len(parts.interval_header("95% interval", "points").copied) == 2


def test_conditions_that_are_the_same_go_into_the_caption_and_equal_results_stay():
    rows = [{"dataset": name, "model": "m"} for name in ("books", "music")]
    header = ["framework", "test examples", "sd (points)"]
    table = parts.with_places(rows, "t", header, lambda _: ["fairseq", 400, 1.0], caption="C.", named=1)
    assert list(table.header) == ["dataset", "sd (points)"]
    assert table.caption == "C. All rows: framework fairseq; test examples 400."
    named = parts.with_places(rows, "t", header, lambda _: ["x", 400, 1.0], caption="C.", places=["model"])
    assert list(named.header) == ["framework", "sd (points)"]


def test_columns_of_one_value_go_into_the_caption():
    table = Table("t", ["a", "b", "c"], [["x", "y", 1], ["x", "z", 1]], "Caption", right=(2,))
    short = parts.fold(table, (0, 1))
    assert (list(short.header), short.caption) == (["b", "c"], "Caption. All rows: a x.")
    assert list(short.right) == [1]


def test_one_row_keeps_the_first_column_of_those_that_tell_rows_apart():
    table = Table("t", ["a", "b", "c", "d"], [["x", "y", 1, None]], "Caption", right=(2, 3))
    short = parts.fold(table, (0, 1, 3))
    assert (list(short.header), short.caption) == (["a", "c"], "Caption. The row: b y.")
    assert list(short.right) == [1]
    none = replace(table, rows=[])
    assert parts.fold(none, (0, 1)) == none


# --- words ---


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (words.percent(0.794), "79.4%"),
        (words.percent(None), "–"),
        (words.points(0.0286), "+2.9"),
        (words.points(-0.032), "−3.2"),
        (words.points(-0.0001), "0.0"),
        (words.points(None), "–"),
        (words.difference_range("accuracy", -0.01, 0.02), "−1.0 to +2.0"),
        (words.value_range("accuracy", -0.2, 1.1), "0.0% to 100.0%"),
        (words.value_range("accuracy", None, None), "–"),
        (words.mean_sd("accuracy", 0.794, 0.0081), "79.4% ± 0.8%"),
        (words.mean_sd("accuracy", 0.794, None), "79.4%"),
        (words.p_text(0.25), "0.25"),
        (words.p_text(0.0079365), "0.0079"),
        (words.p_text(0.0625), "0.063"),
        (words.p_text(1.0), "1.00"),
        (words.join(["a", "b", "c"]), "a, b and c"),
        (words.count(1, "seed"), "1 seed"),
        (words.count(1000, "run"), "1,000 runs"),
    ],
)
def test_numbers_in_words(made, expected):
    assert made == expected


# --- what is told alike everywhere --------------------------------------------------------------------------


def test_two_crossed_levels_bear_no_verdict_and_their_intervals_say_over_what_they_are(tmp_path):
    made = make_experiment(tmp_path, seeds={"init": [0, 1], "data": [0, 1]}, sizes=SIZES)
    ((note,),) = asked(lambda: write_whole(made))["contrasts.note"]
    assert note.crossed
    assert {row["no_verdict"] for row in read_table(made.outputs["contrasts"])} == {"too few seeds"}
    rows = read_table(made.outputs["contrasts"])
    calls = asked(lambda: export.printed_contrasts(rows, made.plan.reporting()))
    assert {means > 0 for means, _ in calls["export.kind_of_t"]} == {True}


def test_an_interval_of_a_difference_of_gains_is_cut_at_what_it_can_be(tmp_path):
    bad = "books/small/transformers/pretrained/lab/seed0"
    options = {"datasets": ("books", "music"), "frameworks": ["transformers"], "diverged": [bad]}
    made = make_experiment(tmp_path, seeds=[0, 1], sizes=SIZES, **options)
    calls = asked(lambda: write_whole(made))
    text = write_whole(made)
    (row,) = (row for row in read_table(made.outputs["contrasts"]) if row["family"] == "dataset")
    assert (row["ci_low"], row["ci_high"]) == (-2, 2)
    assert "−200.0 to +200.0, " in text.split("\n## ")[0]
    assert "| −200.0 to +200.0 |" in text
    assert calls["contrasts.note"][0][0].gains


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"models": ("small", "large"), "inits": ["pretrained"]}, "model"),
        ({"datasets": ("books", "music")}, "dataset"),
    ],
    ids=["models", "datasets"],
)
def test_sentences_on_several_recipes_say_of_which_they_are(tmp_path, options, kind):
    recipes = {"short": {"epochs": 3}}
    made = make_experiment(
        tmp_path, seeds=[0, 1, 2], recipes=recipes, frameworks=["transformers"], sizes=SIZES, **options
    )
    write_whole(made)
    found = experiment_of(made)
    rows = [row for row in found.contrasts if row["family"] == kind]
    places = [compared(found, row, True).place for row in rows]
    assert [re.findall("recipe `(.*?)`", place) for place in places] == [["lab"], ["short"]]


def test_without_an_interval_nothing_is_claimed_of_the_choice_of_recipe(tmp_path):
    recipe = {"sweep": {"epochs": [2, 3], "learning_rate": [1e-5, 1e-4]}}
    made = make_experiment(tmp_path, seeds=[0], recipe=recipe, sizes=SIZES)
    calls = asked(lambda: write_whole(made))
    assert {effect.kind for _, effect, _ in calls["recipe_effects.recipe_effect"]} <= {
        "unclear",
        "same_recipe",
    }
