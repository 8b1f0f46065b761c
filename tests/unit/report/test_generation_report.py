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
    data_of,
    experiment_of,
    read,
    write_report,
    write_trainable,
    write_whole,
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
from seedbed.report.answer import answer, of_gains
from seedbed.report.documents.blocks import cell_text
from seedbed.report.first_table import first_table
from seedbed.report.next_step import Step, next_step
from seedbed.report.opening import compared_methods, opening
from seedbed.report.power import rests_on

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
    return write_whole(made)


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
    ((said,),) = asked(lambda: opening(found))["opening.answer"]
    (finding,) = said.findings
    assert (said.subject, finding.verdict) == ("fine_tuning", "higher")
    differences = {one.name: one for one in finding.differences}
    assert list(differences) == ["full fine-tuning", "LoRA", "QLoRA"]
    lora = differences["LoRA"]
    assert lora.delta == row["delta"]
    assert lora.interval == words.difference_range("loss", row["ci_low"], row["ci_high"])
    runs = read_table(made.outputs["runs"])
    untrained = next(run["test_perplexity"] for run in runs if run["method"] == "none")
    assert {one.perplexities[0] for one in differences.values()} == {untrained}
    # six comparisons: their differences stand in a table below
    assert lora.interval not in text.splitlines()[2]
    delta = words.change("loss", row["delta"])
    assert f"| LoRA | the untrained model | {delta} | {lora.interval} |" in text.split("\n## ")[0]


def lora_against_full(found) -> method_comparisons.Comparison:
    """The comparison of LoRA and full fine-tuning."""
    sides = {(one.method("a"), one.method("b")): one for one in method_comparisons.comparisons(found)}
    return sides["lora", "full"]


def with_interval(row, low, high):
    """The row with another interval, and what it says."""
    ends = {"ci_low": low, "ci_high": high, "direction": verdicts.direction(low, high)}
    return {**row, "delta": (low + high) / 2, **ends}


def test_an_interval_that_holds_zero_decides_nothing(made):
    one = lora_against_full(experiment_of(made))
    unclear = dataclasses.replace(one, row=with_interval(one.row, -0.02, 0.04))
    found = compared_methods(unclear, True, False)
    assert (found.verdict, found.withheld, found.difference.delta) == ("unclear", "", pytest.approx(0.01))


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
    assert calls["method_comparisons.other_settings"] == [
        ("LoRA", "full fine-tuning", [("batch_size", [4], [batch])])
    ]
    assert method_comparisons.other_settings(one) == []


@pytest.mark.parametrize(("low", "high", "verdict"), [(0.1, 0.2, "lower"), (-0.2, -0.1, "higher")])
def test_more_loss_is_worse(made, low, high, verdict):
    one = lora_against_full(experiment_of(made))
    worse = dataclasses.replace(one, row=with_interval(one.row, low, high))
    assert compared_methods(worse, True, False).verdict == verdict


def test_the_first_table_shows_what_each_method_takes_and_reaches(made):
    edited = experiment_of(made)
    change_runs(edited, lambda run: {"peak_memory_mib": 600.0 if run.method == "lora" else None})
    table = first_table(edited)
    rows = {
        cell_text(row[0]): dict(zip(map(cell_text, table.header), row, strict=True)) for row in table.rows
    }
    assert list(rows) == ["the untrained model", "LoRA", "QLoRA", "full fine-tuning"]
    lora = {name: cell_text(cell) for name, cell in rows["LoRA"].items()}
    assert (lora["trained"], lora["memory (MiB)"], lora["learning rate"]) == ("164 k (0.72%)", "600", "3e-4")
    assert rows["full fine-tuning"]["memory (MiB)"] is None
    for metric in ("loss", "exact_match", "f1"):
        (row,) = (
            row
            for row in read_table(made.outputs["summary"])
            if (row["method"], row["selection"], row["metric"]) == ("lora", "best", metric)
        )
        unit = words.unit_of(metric).value
        told = words.mean_sd(metric, row["mean"], row["sd"]).replace("%", "")
        assert lora[words.with_unit(words.metric_name(metric), unit)] == told


def test_collapsed_runs_are_told_behind_the_answer(tmp_path):
    made = make_generation(tmp_path, methods=("none", "lora"), seeds=[0, 1, 2], diverged=[f"{LORA}/seed1"])
    aggregate(made)
    (((said,), _),) = asked(lambda: opening(experiment_of(made)))["opening.collapsed"]
    # of the side that trains
    assert [(rate.side, rate.collapsed, rate.runs) for rate in said.rates] == [("with LoRA", 1, 3)]


def test_without_untrained_runs_no_gain_is_claimed(tmp_path):
    made = make_generation(tmp_path, methods=("lora",), seeds=[0])
    calls = asked(lambda: write_whole(made))
    ((kind, _, _, means, left_out),) = calls["opening.alone"]
    assert (kind, len(means), left_out) == ("trained", 1, 0)
    assert calls["opening.step"] == [("add_untrained", None)]
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
    calls = asked(lambda: write_whole(made))
    assert calls["opening.lead"][0][0] == {"fine_tuning": {"higher": 4}}
    assert [one.place for one in opening(experiment_of(made)).groups] == ["on `a`", "on `b`"]
    assert ("test F1",) in calls["data.leak_caption"]


def test_one_seed_claims_nothing(tmp_path):
    made = make_generation(tmp_path, seeds=[0], sizes={"validation": 20, "test": 40})
    aggregate(made)
    calls = asked(lambda: opening(experiment_of(made)))
    ((said,),) = calls["opening.answer"]
    assert [one.verdict for one in said.findings] == ["single"]
    assert [kind for kind, _ in calls["opening.step"]] == ["few_seeds"]


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
    assert "None" not in write_whole(made)
    calls = asked(lambda: write_report(made))
    told = {one.verdict for (said,) in calls["opening.answer"] for one in said.findings}
    # a sweep does not choose it
    assert ("undefined" in told) is ("rates" not in options)
    assert ("undefined" in {kind for kind, _ in calls["opening.step"]}) is ("rates" not in options)


def test_of_untrained_runs_alone_that_is_said(tmp_path):
    made = make_generation(tmp_path, methods=("none",), seeds=[0], sizes={"validation": 20, "test": 40})
    aggregate(made)
    calls = asked(lambda: opening(experiment_of(made)))
    ((kind, _, _, means, _),) = calls["opening.alone"]
    assert (kind, len(means)) == ("untrained", 1)


def test_the_first_table_gives_the_number_of_test_questions_and_of_their_texts(made):
    found = experiment_of(made)
    for groups, texts in ((12, 12), (120, 0)):
        change_runs(found, lambda run, groups=groups: {"test_groups": groups})
        sizes = asked(lambda: first_table(found))["method_comparisons.size"]
        assert set(sizes) == {(120, texts, "test question")}


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
        assert calls.get("method_comparisons.size") == ([(*size, "test question")] if size else None)
        assert (sections_accuracy.warning_section(experiment) == []) is (
            size is None and of_state is not runs
        )


def test_runs_count_in_each_state_that_they_are_in(made):
    found = experiment_of(made)
    # a collapsed one among them
    change_runs(found, lambda run: {"not_above_untrained": run.method == "full"})
    warned = asked(lambda: sections_accuracy.warning_section(found))
    for state, number in {"collapsed": 1, "not_above_untrained": 12, "unstable": 2}.items():
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
    ((*_, settings),) = calls["method_comparisons.other_settings"]
    assert {key: (a, b) for key, a, b in settings} == {
        "lora.target_modules": (["query", "value"], ["query_key_value"]),
        "lora.modules_to_save": (["head"], [None]),
        "frozen_dtype": (["bfloat16"], ["float32"]),
    }


def test_an_answer_of_several_verdicts_names_the_methods_of_each(made):
    found = experiment_of(made)
    (gains,) = of_gains(found)
    ends = {"LoRA": (-0.2, -0.1), "QLoRA": (0.1, 0.2), "full fine-tuning": (0.1, 0.2)}
    rows = {name: with_interval(row, *ends[name]) for name, row in gains.rows.items()}
    findings = answer(dataclasses.replace(gains, rows=rows)).findings
    methods = {one.verdict: [difference.name for difference in one.differences] for one in findings}
    assert methods == {"lower": ["full fine-tuning", "QLoRA"], "higher": ["LoRA"]}


def test_what_differing_intervals_are_over_is_told_by_method(made):
    found = experiment_of(made)
    rows = [one.row for one in method_comparisons.comparisons(found) if one.method("b") == "none"]
    equal = [rows[0], *({**row, "selection": "equal"} for row in rows[1:])]
    calls = asked(lambda: rests_on(equal, names=["A", "B", "C"]))
    ((rests,),) = calls["power.rests_on"]
    assert [names for _, names in rests.by_name] == [["A"], ["B", "C"]]


def test_what_is_left_to_do_about_methods(made):
    found = experiment_of(made)
    (gains,) = of_gains(found)
    step = next_step(gains)
    assert (step.kind, len(step.about.undecided)) == ("settled", 2)
    blocks = found.reporting["recipes"]
    lora = blocks["lora.learning_rate=0.0003"]

    def with_lora(**more):
        """The same with other settings in the recipe that LoRA chose."""
        recipes = {**blocks, "lora.learning_rate=0.0003": {**lora, **more}}
        return of_gains(dataclasses.replace(found, reporting={**found.reporting, "recipes": recipes}))[0]

    assert next_step(with_lora(batch_size=4)) == Step("settings", ["batch_size"])
    # where the best of a sweep is at its end
    assert next_step(with_lora(swept={"learning_rate": 0.5})) == Step(
        "edge", [("LoRA", "largest", "learning_rate", 0.5)]
    )


# --- sections -----------------------------------------------------------------------------------------------


def section(text: str, title: str) -> str:
    """The part of a document below a heading of level 2, or of level 3 within a section."""
    mark, rest = re.split(rf"^(###?) {re.escape(title)}\n", text, maxsplit=1, flags=re.MULTILINE)[1:]
    return re.split(rf"^#{{2,{len(mark)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


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
    calls = asked(lambda: write_whole(made))
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
    assert [values[0] for values in calls["accuracy.not_above_untrained"]] == [12]
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
    for term in ("LoRA", "QLoRA", "nf4", "perplexity", "nats", "exact match", "F1", "token accuracy"):
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


def test_the_terminal_shows_methods_within_a_screen(made, text):
    summary.write_summary(*read(made), made.experiment / "summary.md", made.experiment / "summary.json")
    printed = show.show(made.experiment, 100)
    assert len(printed.splitlines()) <= 25
    # the folder of a test has a long name
    assert max(map(len, printed.splitlines()[:-3])) <= 100
    assert re.search(r"^QLoRA +3e-4 +164 k \(0\.72%\)", printed, re.M)


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
    return data_of(made)


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
    write_whole(made)
    data = data_of(made)
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
        ["test token accuracy", "(%)", "higher is better"],
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


def test_lora_on_classes_is_compared_in_points(tmp_path):
    adapter = {"method": "lora", "lora": {"task_type": "SEQ_CLS", "target_modules": ["query", "value"]}}
    made = make_experiment(
        tmp_path,
        accuracy=lambda run: 0.70 if run.method == "lora" else 0.80,
        recipes={"adapter": adapter},
        inits=["pretrained"],
        sizes={"validation": 60, "test": 400},
    )
    calls = asked(lambda: write_whole(made))
    (row,) = rows_of(made, "accuracy")
    (((one,),),) = calls["opening.compared"]
    assert (one.a, one.b, one.verdict) == ("LoRA", "full fine-tuning", "lower")
    assert one.difference.delta == row["delta"]
    (group,) = opening(experiment_of(made)).groups
    assert [line.kind for line in group.lines] == ["answer", "baseline", "next"]
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
    finally:
        path.unlink()
        path.parent.rmdir()


def test_a_table_of_runs_without_stability_has_no_such_section(made, tmp_path):
    copy = tmp_path / "runs.csv"
    copy.write_text(made.outputs["runs"].read_text())
    edit_csv(copy, lambda rows: [row.update(unstable="") for row in rows])
    experiment = dataclasses.replace(experiment_of(made), runs=RunRow.read(copy))
    assert stability.stability_blocks(experiment) == []
