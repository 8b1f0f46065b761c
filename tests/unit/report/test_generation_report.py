"""Summary, report, tables and figures of an experiment that generates answers, and of LoRA on classes."""

import csv
import dataclasses
import re
from html import unescape

import matplotlib.pyplot as plt
import pytest
from builders_report import (
    aggregate,
    asked,
    experiment_of,
    read,
    write_report,
    write_summary,
    write_trainable,
)
from builders_rows import change_runs, changed, run_row
from synthetic import LOSS_RATES, edit_csv, make_experiment, make_generation

import show
from seedbed.analysis import verdicts
from seedbed.analysis.table_rows import RunRow
from seedbed.core import run_folder, words
from seedbed.core.rows import read_table
from seedbed.figures import base, plot, registry
from seedbed.report import (
    export,
    limits,
    method_comparisons,
    sections_accuracy,
    sections_methods,
    sources,
    stability,
    summary,
)
from seedbed.report.answer import answer
from seedbed.report.documents.blocks import cell_text

FULL = "questions/tiny/transformers/pretrained/full.learning_rate=0.001"
METHODS = ("none", "lora", "qlora", "full")
BASELINE = "better than the untrained model"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A sweep of four methods, at whose largest rate full fine-tuning has an unstable and a diverged run."""
    made = make_generation(
        tmp_path_factory.mktemp("made"),
        methods=METHODS,
        rates=LOSS_RATES,
        unstable=[f"{FULL}/seed1"],
        diverged=[f"{FULL}/seed2"],
        seeds=[0, 1, 2],
        test_curves=True,
    )
    write_trainable(made)
    aggregate(made)  # some tests read the tables and nothing else
    return made


@pytest.fixture(scope="module")
def text(made) -> str:
    return write_summary(made)


@pytest.fixture(scope="module")
def page(made, text) -> str:
    return write_report(made)


@pytest.fixture(scope="module")
def plain(page) -> str:
    """What a reader sees of the page, without tags."""
    body = re.sub(r"<(style|script)\b.*?</\1>", " ", page.split("<body", 1)[1], flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def rows_of(made, metric, family="method", **wanted):
    rows = read_table(made.outputs["contrasts"])
    wanted |= {"metric": metric, "family": family, "test_set": "all"}
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


# --- the answer ---------------------------------------------------------------------------------------------


def test_the_answer_begins_with_what_fine_tuning_brings(made, text):
    (row,) = rows_of(made, "loss", contrast="lora - none", selection="best")
    found = experiment_of(made)
    calls = asked(lambda: answer(found))
    ((verdict,),) = calls["method_comparisons.gain_verdict"]
    assert verdict.methods == {"higher": ["full fine-tuning", "LoRA", "QLoRA"]}
    ((told, _, differences),) = calls["method_comparisons.gains"]
    lead = text.splitlines()[2]
    assert lead.startswith(f"**{words.capital(told)}")
    assert differences in lead
    assert f"{words.difference_text('loss', row['delta'])} with LoRA" in differences
    assert words.difference_range("loss", row["ci_low"], row["ci_high"]) in differences
    runs = read_table(made.outputs["runs"])
    untrained = next(run["test_perplexity"] for run in runs if run["method"] == "none")
    assert {before for before, _ in calls["method_comparisons.perplexity"]} == {untrained}
    (f1,) = rows_of(made, "f1", contrast="lora - none", selection="best")
    ((changes, *_),) = calls["method_comparisons.answer_changes"]
    assert f"{words.points(f1['delta'])} points with LoRA" in changes["f1"]


def lora_against_full(found) -> method_comparisons.Comparison:
    """The comparison of LoRA and full fine-tuning."""
    sides = {(one.method("a"), one.method("b")): one for one in method_comparisons.comparisons(found)}
    return sides["lora", "full"]


def with_interval(row, low, high):
    """The row with another interval, and what it says."""
    ends = {"ci_low": low, "ci_high": high, "direction": verdicts.direction(low, high)}
    return {**row, "delta": (low + high) / 2, **ends}


def test_an_interval_that_holds_zero_decides_nothing(made):
    found = experiment_of(made)
    one = lora_against_full(found)
    rows = {
        "loss": with_interval(one.row, -0.02, 0.04),
        "f1": with_interval(one.rows["f1"], -0.03, 0.02),
        "exact_match": with_interval(one.rows["exact_match"], 0.01, 0.03),
    }
    compared = dataclasses.replace(one, rows=rows)
    cost = method_comparisons.cost(compared)
    assert (cost.verdict, cost.withheld, cost.difference) == ("unclear", "", "+0.010 nats")
    assert [metric for metric, *_ in cost.answers] == ["f1", "exact_match"]
    calls = asked(lambda: method_comparisons.cost_sentence(compared))
    assert calls["method_comparisons.open_answers"] == [(1, 2)]


def test_in_what_else_the_recipes_differ_is_told(made):
    found = experiment_of(made)
    one = lora_against_full(found)
    blocks = found.reporting["recipes"]
    changed = {**blocks[one.row["recipe_a"]], "batch_size": 4, "learning_rate": 0.5}
    reporting = {**found.reporting, "recipes": {**blocks, one.row["recipe_a"]: changed}}
    batch = blocks[one.row["recipe_b"]]["batch_size"]
    other = dataclasses.replace(found, reporting=reporting)
    changed = dataclasses.replace(one, experiment=other)
    # the learning rate is swept, and each side chose its own
    calls = asked(lambda: method_comparisons.other_settings(changed))
    assert calls["method_comparisons.other_settings"] == [([("batch_size", [4], [batch])],)]
    assert method_comparisons.other_settings(one) == []


@pytest.mark.parametrize(("low", "high", "verdict"), [(0.1, 0.2, "lower"), (-0.2, -0.1, "higher")])
def test_more_loss_is_worse(made, low, high, verdict):
    one = lora_against_full(experiment_of(made))
    rows = {"loss": with_interval(one.row, low, high)}
    assert method_comparisons.cost(dataclasses.replace(one, rows=rows)).verdict == verdict


def test_savings_are_medians_of_what_both_sides_know(made):
    edited = experiment_of(made)
    memory = {"lora": 600.0}
    change_runs(
        edited,
        lambda run: {"peak_memory_mib": memory.get(run.method, 1000.0), "device": "cuda: H"},
    )
    one = lora_against_full(edited)
    saved = method_comparisons.savings(one)
    assert (saved.trained[0], saved.memory, saved.devices) == (163_840, (600.0, 1000.0), ["cuda: H"])
    change_runs(edited, lambda run: {"device": f"cuda: {run.method}"})
    saved = method_comparisons.savings(one)
    assert (saved.memory, saved.seconds) == (None, None)
    assert len(saved.devices) > 1


def test_runs_that_went_wrong_are_told_in_bold_before_what_methods_cost(made, text):
    ((counts, runs, _),) = asked(lambda: answer(experiment_of(made)))["method_comparisons.states"]
    assert (counts, runs) == ({"collapsed": 1, "unstable": 2, "not_above_untrained": 1}, 39)
    items = [line for line in text.split("\n## ")[0].splitlines() if line.startswith("- ")]
    assert items[0].startswith("- **")
    assert len(items) == 4


def test_without_untrained_runs_no_gain_is_claimed(tmp_path):
    made = make_generation(tmp_path, methods=("lora",), seeds=[0])
    calls = asked(lambda: write_summary(made))
    ((untrained_alone, _, means, left_out),) = calls["method_comparisons.without_gains"]
    assert (untrained_alone, len(means), left_out) == (False, 1, 0)
    assert "methods.method_caption" not in calls
    assert "contrasts.caption" not in calls


def test_of_several_places_gains_are_counted_and_listed(tmp_path):
    made = make_generation(
        tmp_path,
        datasets=("a", "b"),
        seeds=[0, 1, 2],
        sizes={"validation": 20, "test": 40},
        leaked=["test-3"],
    )
    calls = asked(lambda: write_summary(made))
    assert [values[1:3] for values in calls["method_comparisons.gains_in_places"]] == [(4, 4)]
    assert [found.place for (found,) in calls["method_comparisons.gain_verdict"]] == ["on `a`", "on `b`"]
    assert ("test F1",) in calls["data.leak_caption"]


def test_one_seed_claims_nothing(tmp_path):
    made = make_generation(tmp_path, seeds=[0], sizes={"validation": 20, "test": 40})
    aggregate(made)
    calls = asked(lambda: answer(experiment_of(made)))
    ((verdict,),) = calls["method_comparisons.gain_verdict"]
    assert list(verdict.methods) == ["single"]
    assert (1, 1, None) in calls["experiment.seeds"]


LORA = "questions/tiny/transformers/pretrained/lora"


@pytest.mark.parametrize(
    ("bad", "options"),
    [
        (f"{LORA}/seed1", {"leaked": ["test-0", "test-1"]}),
        (f"{LORA}/seed1", {"inits": ["pretrained", "random"]}),
        (f"{LORA}.learning_rate=0.0003/seed1", {"inits": ["pretrained", "random"], "rates": (3e-4, 1e-4)}),
    ],
    ids=["leaks", "both inits", "both inits, swept"],
)
def test_a_run_without_a_finite_loss_has_no_difference_anywhere(tmp_path, bad, options):
    made = make_generation(tmp_path, seeds=[0, 1], diverged=[bad], **options)
    assert "None" not in write_summary(made)
    calls = asked(lambda: write_report(made))
    assert any(undefined for _, undefined, _ in calls["experiment.without_interval"])


def test_of_untrained_runs_alone_that_is_said(tmp_path):
    made = make_generation(tmp_path, methods=("none",), seeds=[0], sizes={"validation": 20, "test": 40})
    aggregate(made)
    calls = asked(lambda: answer(experiment_of(made)))
    ((untrained_alone, _, means, _),) = calls["method_comparisons.without_gains"]
    assert (untrained_alone, len(means)) == (True, 1)
    assert calls["method_comparisons.size"] == [(40, 0)]


def test_the_lead_gives_the_number_of_test_questions_and_of_their_texts(made, text):
    found = experiment_of(made)
    for groups, texts in ((12, 12), (120, 0)):
        change_runs(found, lambda run, groups=groups: {"test_groups": groups})
        assert asked(lambda: answer(found))["method_comparisons.size"] == [(120, texts)]
    half = len(found.runs) // 2
    found.runs[:half] = [changed(run, dataset="other") for run in found.runs[:half]]
    calls = asked(lambda: method_comparisons.size_sentence(found))
    ((named, left_out),) = calls["method_comparisons.sizes"]
    assert (list(named), left_out) == (["other", "questions"], 0)


@pytest.mark.parametrize(
    ("examples", "texts", "size"), [(29, None, (29, 0)), (30, None, None), (40, 9, (40, 9)), (40, 10, None)]
)
def test_few_test_questions_or_texts_are_warned_of(made, examples, texts, size):
    found = experiment_of(made)
    runs = [changed(run, test_examples=examples, test_groups=texts) for run in found.runs]
    sound = dict.fromkeys(("collapsed", "unstable", "not_above_untrained"), False)
    for of_state in (runs, [changed(run, **sound) for run in runs]):
        experiment = dataclasses.replace(found, runs=of_state)
        calls = asked(lambda experiment=experiment: sections_accuracy.warning_section(experiment))
        assert ("method_comparisons.small_test_set" in calls) is (size is not None)
        assert calls.get("method_comparisons.size") == ([size] if size else None)
        assert (sections_accuracy.warning_section(experiment) == []) is (
            size is None and of_state is not runs
        )


def test_the_lead_and_the_warnings_count_runs_alike(made, text):
    found = experiment_of(made)
    # a collapsed one among them
    change_runs(found, lambda run: {"not_above_untrained": run.method == "full"})
    lead = asked(lambda: method_comparisons.state_sentences(found))["method_comparisons.states"]
    assert lead[0][0] == {"collapsed": 1, "unstable": 2, "not_above_untrained": 12}
    warned = asked(lambda: sections_accuracy.warning_section(found))
    for state, number in lead[0][0].items():
        assert [values[0] for values in warned[f"accuracy.{state}"]] == [number]
    assert None in [loss for _, loss, _ in warned["accuracy.useless_run"]]


def test_adapters_that_differ_in_their_blocks_are_told(made):
    found = experiment_of(made)
    one = next(
        one
        for one in method_comparisons.comparisons(found)
        if (one.method("a"), one.method("b")) == ("qlora", "lora")
    )
    blocks = found.reporting["recipes"]
    name = one.row["recipe_a"]
    lora = blocks[name]["lora"] | {"target_modules": ["query", "value"], "modules_to_save": ["head"]}
    changed = blocks[name] | {"lora": lora, "frozen_dtype": "bfloat16"}
    other = dataclasses.replace(found, reporting={**found.reporting, "recipes": {**blocks, name: changed}})
    compared = dataclasses.replace(one, experiment=other)
    calls = asked(lambda: method_comparisons.other_settings(compared))
    ((settings,),) = calls["method_comparisons.other_settings"]
    assert {key: (a, b) for key, a, b in settings} == {
        "lora.target_modules": (["query", "value"], ["query_key_value"]),
        "lora.modules_to_save": (["head"], [None]),
        "frozen_dtype": (["bfloat16"], ["float32"]),
    }


def test_a_lead_of_several_verdicts_names_the_methods_of_each(made):
    found = experiment_of(made)
    gains = [one for one in method_comparisons.comparisons(found) if one.method("b") == "none"]
    ends = {"lora": (-0.2, -0.1), "qlora": (0.1, 0.2), "full": (0.1, 0.2)}
    changed = [
        dataclasses.replace(one, rows={"loss": with_interval(one.row, low, high)})
        for one in gains
        for low, high in [ends[one.method("a")]]
    ]
    verdict = method_comparisons.gain_verdict(changed)
    assert verdict.methods == {"lower": ["full fine-tuning", "QLoRA"], "higher": ["LoRA"]}


def test_what_differing_intervals_are_over_is_told_by_method(made):
    found = experiment_of(made)
    rows = [one.row for one in method_comparisons.comparisons(found) if one.method("b") == "none"]
    equal = [rows[0], *({**row, "selection": "equal"} for row in rows[1:])]
    calls = asked(lambda: method_comparisons.rests_on(equal, names=["A", "B", "C"]))
    ((rests,),) = calls["power.rests_on"]
    assert [names for _, names in rests.by_name] == [["A"], ["B", "C"]]


def test_why_answers_have_no_interval_is_said_once(made):
    found = experiment_of(made)
    missing = dict.fromkeys(("ci_low", "ci_high", "t_low", "t_high"))
    gains = [
        dataclasses.replace(one, rows={metric: {**row, **missing} for metric, row in one.rows.items()})
        for one in method_comparisons.comparisons(found)
        if one.method("b") == "none"
    ]
    for of_all in (True, False):
        calls = asked(lambda: method_comparisons._answer_changes(found, gains))
        ((changes, reason, told_of_all),) = calls["method_comparisons.answer_changes"]
        assert told_of_all is of_all
        assert not any(reason in told for told in changes.values())
        assert ("+10.0 to +20.0" in changes["f1"]) is not of_all
        gains[0].rows["f1"].update(ci_low=0.1, ci_high=0.2)


@pytest.mark.parametrize(("seconds", "long"), [(4.0, False), (6.0, True)])
def test_short_times_have_no_relative_difference(made, seconds, long):
    found = experiment_of(made)
    change_runs(found, lambda run: {"train_seconds": seconds if run.method == "lora" else 8.0})
    saved = method_comparisons.savings(lora_against_full(found))
    assert (saved.seconds, saved.long) == ((seconds, 8.0), long)


def test_runs_that_failed_count_in_a_cost_and_are_told(made):
    found = experiment_of(made)
    one = lora_against_full(found)

    def failed():
        calls = asked(lambda: method_comparisons.cost_sentence(one))
        return [values[:3] for values in calls.get("method_comparisons.failed", [])]

    assert failed() == []
    first, second, _ = (run.folder for run in one.runs("b"))
    change_runs(found, lambda run: {"diverged": run.folder == first})
    assert failed() == [(1, 3, "full fine-tuning")]
    change_runs(found, lambda run: {"collapsed": run.folder == second})
    assert failed() == [(2, 3, "full fine-tuning")]


# --- sections -----------------------------------------------------------------------------------------------


def section(text: str, title: str) -> str:
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_methods_stand_side_by_side_with_costs_and_scores(made, text):
    found = section(text, "Methods side by side")
    header = next(line for line in found.splitlines() if line.startswith("| recipe"))
    for name in (
        "trainable parameters",
        "of all (%)",
        "peak memory (MiB)",
        "tokens a second",
        "training (s)",
    ):
        assert name in header
    for name in ("test loss (nats)", "test perplexity", "test exact match (%)", "test F1 (%)"):
        assert name in header
    line = next(line for line in found.splitlines() if "(own best)" in line and "| LoRA |" in line)
    (row,) = (
        row
        for row in read_table(made.outputs["summary"])
        if (row["method"], row["selection"], row["metric"]) == ("lora", "best", "f1")
    )
    assert line.split("|")[-2].strip() == words.mean_sd("f1", row["mean"], row["sd"]).replace("%", "")


def test_each_metric_has_a_table_in_its_unit(text):
    assert "binomial" not in section(text, "Test loss").replace("statistics", "")
    assert "majority" not in text.replace("not above majority", "")


def test_sections_of_two_frameworks_and_of_classes_are_left_out(text, page):
    for title in (
        "Calibration",
        "Is the converted model",
        "Departures",
        "Are the frameworks",
        "Architecture",
    ):
        assert f"## {title}" not in text
        assert title not in re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert "bag of words" not in text.lower()
    assert "run_glue" not in page


def test_a_sweep_tells_at_which_rate_training_becomes_unstable(made, text):
    found = section(text, "Each side at its best: the sweep")
    assert re.search(r"^\| full \| 1e-3 \| 3 \| 2 \| 1 \| 1 \| \d \|$", found, re.M)


@pytest.mark.parametrize(
    ("unstable", "first", "stable"),
    [
        ({1e-4: [True, False], 3e-4: [True, True]}, 1e-4, None),
        ({1e-4: [True, False], 3e-4: [False, False]}, 1e-4, 3e-4),
        ({1e-4: [False, False], 3e-4: [True, True]}, 3e-4, 1e-4),
        ({1e-4: [False, False], 3e-4: [False, False]}, None, 3e-4),
    ],
)
def test_a_border_that_is_not_clear_is_seen(unstable, first, stable):
    rates = {rate: [run_row(unstable=bad) for bad in runs] for rate, runs in unstable.items()}
    sweep = stability.Sweep(("d", "m", "lora", "transformers", "pretrained"), rates)
    found = stability.onset(sweep, [sweep])
    assert (found.first, found.stable, found.largest) == (first, stable, 3e-4)


def test_from_which_learning_rate_on_runs_learn_nothing_is_told():
    def run(**marks):
        return run_row({"unstable": False, "collapsed": False, "not_above_untrained": False, **marks})

    failed = {"not_above_untrained": True}
    rates = {
        1e-4: [run(**failed)],
        1e-3: [run(), run()],
        1e-2: [run(), run(**failed)],
        1e-1: [run(collapsed=True)],
    }
    sweep = stability.Sweep(("qa", "tiny", "lora", "transformers", "pretrained"), rates)
    assert stability.failures(sweep) == [(1e-2, 1, 2), (1e-1, 1, 1)]
    assert stability.onset(sweep, [sweep]).first is None
    kept = stability.Sweep(sweep.names, {rate: rates[rate] for rate in (1e-4, 1e-3)})
    assert stability.failures(kept) == []


def test_many_stable_sweeps_share_a_sentence():
    stable, unstable = run_row(unstable=False), run_row(unstable=True)
    rates, bad = {1e-4: [stable], 1e-3: [stable]}, {1e-4: [stable], 1e-3: [unstable]}
    names = [("d", "m", "lab", "transformers", f"i{number}") for number in range(6)]
    found = [stability.Sweep(name, bad if number == 0 else rates) for number, name in enumerate(names)]
    calls = asked(lambda: stability.sentences(found, BASELINE))
    assert [onset.first for onset, _ in calls["stability.sweep"]] == [1e-3]
    assert [values[:2] for values in calls["stability.stable_sweeps"]] == [(5, True)]


def test_sweeps_of_classification_tell_it_too(tmp_path):
    made = make_experiment(
        tmp_path,
        recipe={"sweep": {"learning_rate": [1e-5, 1e-4]}},
        diverged=["reviews/small/fairseq/random/lab.learning_rate=0.0001/seed1"],
        sizes={"validation": 40, "test": 80},
    )
    calls = asked(lambda: write_summary(made))
    found = next(found for found, _ in calls["stability.sweep"] if found.first is not None)
    assert list(found.names) == ["lab", "fairseq", "random"]
    assert (found.first, found.unstable, found.runs, found.stable) == (1e-4, 1, 3, 1e-5)


def test_warnings_name_unstable_runs_and_those_not_better_than_untrained(made, text):
    edited = experiment_of(made)
    calls = asked(lambda: sections_accuracy.warning_section(edited))
    told = {values[0]: values[3] for values in calls["accuracy.scored_run"]}
    assert told[f"{FULL}/seed2"] is None
    assert 2 < told[f"{FULL}/seed1"] < 3
    change_runs(edited, lambda run: {"not_above_untrained": run.method == "lora"})
    calls = asked(lambda: sections_accuracy.warning_section(edited))
    assert calls["accuracy.not_above_untrained"] == [(12,)]
    assert all(loss and 3 < untrained < 4 for _, loss, untrained in calls["accuracy.useless_run"])


def test_the_adapters_formula_stands_beside_the_count_and_the_wrong_one_is_named(made, text):
    found = section(text, "What the adapters train")
    calls = asked(lambda: sections_methods.trainable_section(*read(made)))
    assert (11_347_968, "tiny", 22_859_776) in calls["methods.packed"]
    assert ("tiny", "lora", 4, "LoRA") in calls["methods.adapter_caption"]
    assert (
        "| query_key_value | 5 | 5 x r(d_in + d_out) = 5 x 16 x (512 + 1536) | 163,840 | 163,840 |" in found
    )


def test_differences_have_a_table_a_metric(made, text):
    found = section(text, "Differences in test scores")
    (row,) = rows_of(made, "loss", contrast="lora - full", selection="best")
    assert f"| {words.change('loss', row['delta'])} |" in found
    undefined = rows_of(made, "loss", contrast="full - none", recipe_a="full.learning_rate=0.001")
    assert [row["delta"] for row in undefined] == [None]
    assert "| full − none | full, learning rate 1e-3 / none | – | – |" in found


# --- answers ------------------------------------------------------------------------------------------------


def test_the_first_answers_and_those_that_changed_most_are_chosen():
    names = [f"test-{number}" for number in range(30)]
    told = {
        "untrained": dict.fromkeys(names, ("x", 0.0)),
        "LoRA": {name: ("y", 0.9 if name in ("test-12", "test-29") else 0.1) for name in names},
        "full": {name: ("z", 1.0 if name == "test-20" else 0.0) for name in names},
    }
    chosen = sections_methods.choose(told, ["untrained"])
    assert chosen == [*names[:10], "test-20", "test-12", "test-29", "test-10", "test-11"]
    del told["untrained"]
    assert sections_methods.choose(told, [])[10:13] == ["test-12", "test-20", "test-29"]


def test_answers_stand_side_by_side_escaped(made, page, plain):
    table = re.search(r'<table[^>]*id="answers_1".*?</table>|id="answers_1".*?</table>', page, re.DOTALL)[0]
    header = [
        unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in re.findall(r"<th\b.*?</th>", table, re.S)
    ]
    assert [name.split("\n")[0].strip(" ↕") for name in header[:7]] == [
        "example", "question", "reference", "the untrained model", "LoRA", "QLoRA", "full fine-tuning",
    ]  # fmt: skip
    assert "&lt;b&gt;3&lt;/b&gt;" in table
    assert "<b>3</b>" not in table
    assert table.count("<tr") == 16
    with open(made.folders[0] / "predictions.csv", encoding="utf-8", newline="") as stream:
        first = next(row for row in csv.DictReader(stream) if row["split"] == "test")
    assert f"{first['answer']} ({words.percent(float(first['f1']), 0)})" in plain


def test_a_long_answer_is_cut_and_copied_whole():
    cell = sections_methods.text_cell("mot " * 200 + "<i>fin</i>", 120)
    assert len(cell_text(cell)) <= 120
    assert cell_text(cell).endswith("…")
    assert cell.value.endswith("<i>fin</i>")
    assert cell_text(sections_methods.text_cell(" \n", 120)) == "(nothing)"


# --- limits, glossary, tables, terminal ---------------------------------------------------------------------


def test_limits_hold_what_the_metrics_of_answers_do_not_show(made):
    found = limits.find(*read(made))
    assert not found.compared_nearly
    assert {"none", "qlora"} <= found.methods
    assert found.devices == ["cpu: Made-up 3000"]
    assert "exact_match" in found.sampling_errors


def test_the_glossary_means_the_terms_of_the_task(page):
    terms = page.split('id="glossary"')[-1]
    for term in ("LoRA", "rank", "QLoRA", "nf4", "perplexity", "nats", "exact match", "F1", "token accuracy"):
        assert f"<strong>{term}</strong>" in terms
    assert "as fairseq logs it" not in terms


def test_exported_tables_name_the_unit_of_each_row(made, text, tmp_path):
    outputs = {
        f"{name}_{ending}": tmp_path / f"{name}.{ending}"
        for name in ("summary", "contrasts")
        for ending in ("csv", "md", "tex")
    }
    export.write_tables(made.outputs["summary"], made.outputs["contrasts"], made.plan.reporting(), outputs)
    with open(outputs["summary_csv"], encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    machine = read_table(made.outputs["summary"])
    assert {row["unit"] for row in rows if row["metric"] == "loss"} == {"nats"}
    for row, known in zip(rows, machine, strict=True):
        factor = 1 if known["metric"] == "loss" else 100
        told = row["mean test score (unit of the row)"]
        assert told == "" if known["mean"] is None else float(told) == pytest.approx(factor * known["mean"])
    assert not {"ECE (points)", "majority class (%)", "bag of words (%)"} & set(rows[0])
    with open(outputs["contrasts_csv"], encoding="utf-8", newline="") as stream:
        units = {(row["metric"], row["unit"]) for row in csv.DictReader(stream)}
    assert {("loss", "nats"), ("F1", "points"), ("exact match", "points")} <= units
    latex = outputs["contrasts_tex"].read_text()
    assert latex.count(r"\begin{table") == 4


def test_the_terminal_shows_a_table_a_metric(made, text):
    summary.write_facts(experiment_of(made), made.experiment / "summary.json")
    printed = show.show(made.experiment, 100)
    assert "\nLoss (nats, lower is better)\n" in printed
    assert "\nF1 (higher is better)\n" in printed
    (row,) = (
        row
        for row in read_table(made.outputs["summary"])
        if (row["metric"], row["method"], row["selection"]) == ("loss", "lora", "best")
    )
    mean = re.escape(words.mean_sd("loss", row["mean"], row["sd"]))
    assert re.search(rf" lora, learning rate 3e-4 \* +{mean} ", printed)
    assert "To beat" not in printed


@pytest.mark.parametrize(
    ("metric", "value", "told"),
    [
        ("f1", 0.794, "79.4%"),
        ("loss", 1.23456, "1.235"),
        ("loss", None, "–"),
        ("perplexity", 1234.567, "1,234.57"),
        ("perplexity", 3e30, "3.00e+30"),
        ("perplexity", float("inf"), "inf"),
    ],
)
def test_values_have_the_form_of_their_metric(metric, value, told):
    assert words.value_text(metric, value) == told


@pytest.mark.parametrize(
    ("metric", "low", "high", "told"),
    [
        ("loss", -0.0004, 0.1, "−0.0004 to +0.100"),
        ("f1", 0.0004, 0.1, "+0.04 to +10.0"),
        ("f1", None, 0.1, "–"),
    ],
)
def test_a_bound_beside_zero_has_a_digit_more(metric, low, high, told):
    assert words.difference_range(metric, low, high) == told


# --- figures ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(made, text) -> plot.Data:
    plot.set_style()
    return plot.read_data(made.outputs, made.plan.reporting())


def test_the_plan_names_the_figures_that_make_sense(made, tmp_path):
    assert registry.names_for(made.plan) == [
        "test_scores", "contrasts", "test_scores_by_recipe", "expected_validation", "learning_curves",
        "test_curves", "time_and_memory",
    ]  # fmt: skip
    one = make_generation(tmp_path, methods=("lora",), seeds=[0], sizes={"validation": 20, "test": 40})
    assert registry.names_for(one.plan) == ["test_scores", "learning_curves", "time_and_memory"]


def test_where_no_difference_can_be_drawn_the_figure_says_so(tmp_path):
    bad = "questions/tiny/transformers/random/lora/seed1"
    options = {"methods": ("lora",), "seeds": [0, 1], "inits": ["pretrained", "random"], "diverged": [bad]}
    made = make_generation(tmp_path, **options)
    assert "contrasts" in registry.names_for(made.plan)
    write_summary(made)
    data = plot.read_data(made.outputs, made.plan.reporting())
    calls = asked(lambda: plt.close(plot.FIGURES["contrasts"](data)[0]))
    assert calls["contrasts.nothing"] == [(1,)]


def test_frameworks_are_those_that_have_runs(tmp_path):
    """fairseq has no LoRA: there is one framework, and nothing to compare."""
    recipe = {"method": "lora", "lora": {"task_type": "SEQ_CLS", "target_modules": ["query", "value"]}}
    made = make_experiment(tmp_path, recipe=recipe, inits=["pretrained"], seeds=[0, 1])
    assert made.plan.config["grid"]["frameworks"] == ["fairseq", "transformers"]
    assert "contrasts" not in registry.names_for(made.plan)


def test_a_panel_a_metric_has_a_mark_a_seed(data):
    figure, caption = plot.FIGURES["test_scores"](data)
    labels = [axis.get_xlabel().split("\n") for axis in figure.axes]
    assert labels == [
        ["test loss (nats)", "lower is better"],
        ["test token accuracy (%)", "higher is better"],
        ["test exact match (%)", "higher is better"],
        ["test F1 (%)", "higher is better"],
    ]
    look = data.series["lora"]
    marks = [line for line in figure.axes[3].lines if line.get_marker() == look.marker]
    chosen = [
        run for run in data.runs if run["recipe"] in ("lora.learning_rate=3e-05", "lora.learning_rate=0.0003")
    ]
    assert sorted(line.get_xdata()[0] for line in marks) == pytest.approx(
        sorted(100 * run["test_f1"] for run in chosen)
    )
    assert "n = 3 seeds".replace(" ", "\N{NO-BREAK SPACE}") in caption.text
    plt.close(figure)


def test_the_sweep_marks_unstable_and_collapsed_runs_and_draws_the_untrained_model(data):
    figure, _ = plot.FIGURES["test_scores_by_recipe"](data)
    loss, tokens = figure.axes[:2]
    assert [line.get_marker() for line in loss.lines].count(">") == 1
    assert [line.get_marker() for line in tokens.lines].count("X") == 1
    untrained = next(row["mean"] for row in data.summary if row["method"] == "none")
    flat = [line.get_ydata()[0] for line in loss.lines if list(line.get_xdata()) == [0, 1]]
    assert flat == [pytest.approx(untrained)]
    plt.close(figure)


def test_learning_curves_begin_at_the_untrained_model(data):
    figure, _ = plot.FIGURES["learning_curves"](data)
    validation = figure.axes[1]
    assert validation.get_ylabel() == "validation\nloss (nats)\nlower is better"
    means = [line for line in validation.lines if line.get_linewidth() == 2.2]
    assert len(means) == 3
    assert {line.get_xdata()[0] for line in means} == {0}
    plt.close(figure)


def test_the_forest_plot_has_a_panel_a_metric_in_its_unit(data, made):
    figure, _ = plot.FIGURES["contrasts"](data)
    assert [axis.get_xlabel() for axis in figure.axes] == [
        "difference (nats)", *["difference (points)"] * 3,
    ]  # fmt: skip
    assert "test loss (lower is better)" in figure.axes[0].get_title(loc="left")
    (row,) = rows_of(made, "loss", contrast="lora - full", selection="best")
    places = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() == "D"]
    assert any(place == pytest.approx(row["delta"]) for place in places)
    plt.close(figure)


def test_costs_show_what_each_method_trains(data):
    figure, _ = plot.FIGURES["time_and_memory"](data)
    shares = [bar.get_width() for bar in figure.axes[2].patches]
    assert shares == pytest.approx([0, 100 * 163840 / 22859776, 100 * 163840 / 22859776, 100])
    assert [text.get_text() for text in figure.axes[2].texts] == ["0", "163,840", "163,840", "22,695,936"]
    plt.close(figure)


def test_methods_differ_without_colour():
    looks = base.make_looks(METHODS)
    assert len({look.marker for look in looks.values()}) == len(METHODS)
    assert len({str(look.line) for look in looks.values()}) == len(METHODS)


# --- LoRA on classes ----------------------------------------------------------------------------------------


def test_lora_on_classes_tells_its_cost_in_points_and_what_it_saves(tmp_path):
    adapter = {"method": "lora", "lora": {"task_type": "SEQ_CLS", "target_modules": ["query", "value"]}}
    made = make_experiment(
        tmp_path,
        accuracy=lambda run: 0.70 if run.method == "lora" else 0.80,
        recipes={"adapter": adapter},
        inits=["pretrained"],
        sizes={"validation": 60, "test": 400},
    )
    calls = asked(lambda: write_summary(made))
    (row,) = rows_of(made, "accuracy")
    ((cost,),) = calls["method_comparisons.cost"]
    assert (cost.a, cost.b, cost.verdict) == ("LoRA", "full fine-tuning", "lower")
    assert cost.difference == f"{words.points(row['delta'])} points"
    figures = registry.names_for(made.plan)
    assert "contrasts" in figures
    assert "test_accuracy" in figures


def test_the_size_of_an_adapter_is_that_of_its_file(made, text):
    path = made.folders[5] / sources.ADAPTER
    path.parent.mkdir()
    path.write_bytes(b"0" * 2**19)
    try:
        found = experiment_of(made)
        assert found.adapter_mib == {run_folder.name_of(made.folders[5]): 0.5}
        table = sections_methods.method_section(found)[1]
        place = table.header.index("adapter file (MiB)")
        assert [cell_text(row[place]) for row in table.rows].count("0.50") == 1
        sizes = {run.folder: 0.5 for run in found.runs if run.method == "lora"}
        experiment = dataclasses.replace(found, adapter_mib=sizes)
        saved = method_comparisons.savings(lora_against_full(experiment))
        assert (saved.adapter, saved.weights) == (0.5, pytest.approx(86.6, abs=0.05))
    finally:
        path.unlink()
        path.parent.rmdir()


def test_a_table_of_runs_without_stability_has_no_such_section(made, tmp_path):
    copy = tmp_path / "runs.csv"
    copy.write_text(made.outputs["runs"].read_text())
    edit_csv(copy, lambda rows: [row.update(unstable="") for row in rows])
    experiment = dataclasses.replace(experiment_of(made), runs=RunRow.read(copy))
    assert stability.stability_blocks(experiment) == []
