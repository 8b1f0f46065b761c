"""The report: what the page holds, its numbers worked through, its limits, and that it stays small."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
import yaml
from builders_report import MODEL, aggregate, asked, experiment_of, read, write_report
from builders_rows import changed
from synthetic import edit_json, learning_rate_levels, make_experiment

from seedbed.core import commits
from seedbed.core.files import write_jsonl
from seedbed.core.rows import read_table
from seedbed.core.words import count
from seedbed.figures import registry
from seedbed.models import parameters
from seedbed.report import (
    limits,
    parts,
    provenance,
    report,
    sections_accuracy,
    sections_data,
    sections_models,
    sections_predictions,
)
from seedbed.report.documents.blocks import Code, Details, Table, cell_text
from seedbed.report.texts import read_texts, shorten

ROOT = Path(__file__).parents[3]
SIZES = {"validation": 200, "test": 400}
SWEEP = {"sweep": {"learning_rate": [1e-5, 1e-4]}}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_experiment(
        tmp_path_factory.mktemp("made"),
        accuracy=lambda run: learning_rate_levels(run) - 0.2,
        recipe=SWEEP,
        sizes=SIZES,
        collapsed=["reviews/small/fairseq/random/lab.learning_rate=0.0001/seed2"],
        leaked=["test-3"],
    )


opened: list[Path] | None = None  # what is opened for reading, while somebody wants to know


def remember(event: str, arguments: tuple) -> None:
    if opened is not None and event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
        opened.append(Path(os.fsdecode(arguments[0])).absolute())


sys.addaudithook(remember)


@pytest.fixture(scope="module")
def written(made) -> tuple[str, list[Path]]:
    """The page, and the files that were opened for it."""
    global opened
    opened = []
    page = write_report(made)
    files, opened = opened, None
    return page, files


@pytest.fixture(scope="module")
def page(written) -> str:
    return written[0]


@pytest.fixture(scope="module")
def plain(page) -> str:
    """What a reader sees of the page, without tags."""
    body = re.sub(r"<(style|script)\b.*?</\1>", " ", page.split("<body", 1)[1], flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def headings(page: str, level: int) -> list[str]:
    found = re.findall(rf"<h{level}\b[^>]*>(.*?)</h{level}>", page, flags=re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]+>", "", text)).split()) for text in found]


# --- the files ---


def test_the_report_reads_nothing_of_the_benchmarks(written):
    _, files = written
    assert limits.SIMULATIONS / "coverage.csv" in files
    assert [path for path in files if path.is_relative_to(ROOT / "benchmarks")] == []


def test_the_coverage_that_the_report_tells_is_the_one_of_the_benchmark():
    names = sorted(path.name for path in limits.SIMULATIONS.iterdir())
    assert {"coverage.csv", "selection.csv"} <= set(names)
    for name in names:
        measured = ROOT / "benchmarks/results/statistics" / name
        assert (limits.SIMULATIONS / name).read_bytes() == measured.read_bytes()


# --- the page ---


def test_the_answer_comes_first_then_its_strength(page):
    assert len(headings(page, 1)) == 1
    assert page.index("<strong>") < page.index("<h2")


def test_what_everybody_reads_stands_first_and_every_section_in_order(page):
    assert headings(page, 2) == [
        "Warnings: collapsed and weak runs",
        "The data",
        "Test examples that no run gets right",
        "Every score and difference",
        "What pretraining bought, text by text",
        "How sure",
        "How training went",
        "The two frameworks",
        "For the methods section",
        "Glossary",
    ]
    wanted = [
        "Test accuracy",
        "Each side at its best: the sweep",
        "Differences in test accuracy",
        "With and without leaked test examples",
        "What these seeds can and cannot show",
        "Pairs of runs",
        "What the seed changes",
        "Init seed or order of the data?",
        "Calibration and confusion",
        "Limits: what these numbers do not show",
        "While training",
        "Are the frameworks equivalent?",
        "What still differs between the frameworks",
        "Parameters",
        "Architecture",
        "The recipe, and what both frameworks call its options",
        "Provenance",
    ]
    assert [title for title in headings(page, 3) if title in wanted] == wanted


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Each side at its best: the sweep", "expected_validation"),
        ("Differences in test accuracy", "contrasts"),
        ("While training", "learning_curves"),
        ("Calibration and confusion", "confusion"),
        ("The data", "data_audit"),
        ("Provenance", "time_and_memory"),
    ],
)
def test_figures_stand_in_the_section_of_their_numbers(page, title, name):
    parts = re.split(r"<h[23]\b", page)[1:]
    inside = next(part for part in parts if re.search(rf">{re.escape(title)}</h[23]>", part.split("\n")[0]))
    assert f"Caption of {name}." in inside


def test_every_figure_stands_once_with_its_caption(made, plain):
    for name in [*registry.names_for(made.plan), "data_audit"]:
        assert plain.count(f"Caption of {name}.") == 1
        assert plain.count(f"Details of {name}.") == 1


def test_the_page_asks_no_network_for_anything(page):
    loaded = re.findall(r'\b(?:src|srcset|data|poster)="([^"]*)"|<link\b[^>]*href="([^"]*)"', page)
    assert loaded
    assert all("".join(address).startswith("data:") for address in loaded)
    assert "@import" not in page


def test_the_page_does_not_depend_on_the_time(made, page):
    assert write_report(made) == page


def test_names_of_the_data_are_no_markup(made, page, plain):
    (first, *_) = read_table(made.outputs["never_right"])
    number = first["example"].removeprefix("test-")
    assert f"Text <b>{number}</b> of `many`." in plain
    assert f"<b>{number}</b>" not in page


def test_the_glossary_is_linked_below_the_answer_and_explains_what_the_page_uses(page):
    assert page.index('href="#glossary"') < page.index("<h2")
    assert 'id="glossary"' in page
    terms = page.split('id="glossary"')[1]
    for term in ("own best", "equal recipe", "paired, unpaired", "margin", "power", "ECE"):
        assert f"<strong>{term}</strong>" in terms
    assert "<strong>variance decomposition</strong>" not in terms


# --- examples ---


def test_hard_examples_are_limited(made, page, tmp_path):
    path = tmp_path / "reviews" / "test.jsonl"
    write_jsonl(path, [{"id": f"t{k}", "text": "mot " * 200, "label": 0} for k in range(50)])
    found = experiment_of(made)
    found.tables["never_right"][:] = [{"dataset": "reviews", "example": f"t{k}"} for k in range(50)]
    texts = read_texts(sections_predictions.hard_examples(found), [path])
    assert set(texts) == {("reviews", f"t{k}") for k in range(20)}
    assert all(text == ["mot " * 200] for text in texts.values())


def test_hard_pairs_show_both_texts(made, page, tmp_path):
    path = tmp_path / "reviews" / "test.jsonl"
    pair = {"text": "mot " * 99, "text_pair": "autre " * 99}
    write_jsonl(
        path, [{"id": "t1", **pair, "label": 0}, {"id": "t2", "text": "a", "text_pair": "b", "label": 0}]
    )
    rows = [
        {"dataset": "reviews", "example": name, "label": "neg", "wrong_runs": 8, "runs": 8}
        | {"most_common_prediction": "pos"}
        for name in ("t1", "t2")
    ]
    found = experiment_of(made)
    found.tables["never_right"][:] = rows
    texts = read_texts(sections_predictions.hard_examples(found), [path])
    blocks = sections_predictions.never_right_section(found, texts)
    (table,) = (block for block in blocks if isinstance(block, Table) and block.name == "never_right_1")
    assert "The sign ‖ stands between the two texts." in table.caption
    first, second = (row[-1] for row in table.rows)
    assert second.value == "a ‖ b"
    shown = cell_text(first).split(" ‖ ")
    assert [text[:6] for text in shown] == ["mot mo", "autre "]
    assert all(text.endswith("…") and len(text) <= 120 for text in shown)
    assert first.value == f"{pair['text'].strip()} ‖ {pair['text_pair'].strip()}"


def test_hard_examples_of_one_text_share_a_line_and_copy_the_whole_text(made, page):
    rows = [
        {"dataset": "reviews", "example": name, "label": "neg", "wrong_runs": 8, "runs": 8}
        | {"most_common_prediction": "pos"}
        for name in ("t1", "t2", "t3")
    ]
    texts = {
        ("reviews", name): [text] for name, text in (("t1", "mot " * 99), ("t2", "x"), ("t3", "mot " * 99))
    }
    found = experiment_of(made)
    found.tables["never_right"][:] = rows
    blocks = sections_predictions.never_right_section(found, texts)
    (table,) = (block for block in blocks if isinstance(block, Table) and block.name == "never_right_1")
    assert [cell_text(row[0]) for row in table.rows] == ["t1, t3", "t2"]
    text = table.rows[0][-1]
    assert text.value == " ".join(["mot"] * 99)
    assert cell_text(text).endswith("mot…")
    assert len(cell_text(text)) <= 240


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ab cd", "ab cd"),
        ("ab\n cd", "ab cd"),
        ("ab cd ef gh", "ab cd ef…"),
        ("本当に面白い本でした。", "本当に面白い本でし…"),
    ],
)
def test_texts_are_cut_between_words_where_there_are_any(text, shown):
    assert shorten(text, 10) == shown


# --- the models ---


def test_the_formula_is_worked_through_to_the_number_of_the_weights():
    text = sections_models.worked_formula(MODEL)
    expected = parameters.expected_parameters(4, 512, 512, 32_000, 256)["total"]
    lines = text.splitlines()
    assert lines[0] == "N = 4, d = 512, f = 512, V = 32,000, T = 256"
    assert lines[2].strip() == expected[0]
    assert lines[-1] == f"= {expected[1]:,}" == "= 22,829,056"
    for line in lines[3:]:
        numbers = line.removeprefix("= ").replace(",", "").replace("·", "*").replace("×", "*")
        assert eval(numbers.replace("²", "**2")) == expected[1]


def test_departures_show_the_value_that_the_recipe_asks_for():
    recipes = {"a": {"adam_epsilon": 1e-6}, "b": {"adam_epsilon": 1e-8}}
    documents = [
        {"run": {"framework": framework, "recipe": recipe}}
        | {"differences": [{"setting": "adam_epsilon", "asked": "", "done": f"added by {framework}"}]}
        for framework in ("fairseq", "transformers")
        for recipe in recipes
    ]
    _, table = sections_models.framework_section(documents, recipes)
    assert [cell_text(cell) for cell in table.header][2:] == ["done by fairseq", "done by Transformers"]
    told = ["adam epsilon", "1e-6; 1e-8", "added by fairseq", "added by transformers"]
    assert [cell_text(cell) for cell in table.rows[0]] == told


# --- calibration ---


def test_calibration_stands_in_points(made, page):
    found, other = read(made)
    blocks = sections_predictions.calibration_section(found, other)
    (table,) = (block for block in blocks if isinstance(block, Table))
    first = found.summary[0]
    told = [cell_text(cell) for cell in table.rows[0][-2:]]
    assert told == [f"{100 * first[name]:.1f}" for name in ("ece", "ece_of_chance")]
    share = list(table.header).index("accuracy (%)")
    assert table.rows[0][share].value == pytest.approx(100 * first["mean"])


def test_without_probabilities_there_is_no_calibration_table(made, page):
    found, other = read(made)
    found.tables["calibration"].clear()
    blocks = sections_predictions.calibration_section(found, other)
    assert not any(isinstance(block, Table) for block in blocks)


# --- provenance ---


def document(device="cpu: C", total=3600.0, threads=2, energy=None, gpus=()):
    return {
        "device": device,
        "seconds": {"total": total},
        "energy_joules": energy,
        "hardware": {"cpu": "C", "cpus": 4, "threads": threads, "gpus": list(gpus), "cuda": None},
        "versions": {"torch": "2.13.0", "fairseq": None},
        "git_commit": "abc",
    }


def test_hours_are_those_of_the_device():
    documents = [document(total=5400.0), document("cuda: H", 7200.0, energy=3.6e6)]
    calls = asked(lambda: provenance.cost_texts(documents))
    assert calls["provenance.gpu_hours"] == [(2.0, 1)]
    assert calls["provenance.cpu_hours"] == [(1.5, 1, 3.0)]


def test_fused_seeds_are_told_and_what_they_took_together_counts_once():
    seeds = [[0, 0], [1, 1]]
    fused = [document(total=7200.0, energy=7.2e6) | {"fused_with": seeds}] * 2
    calls = asked(lambda: provenance.cost_texts(fused))
    assert calls["provenance.cpu_hours"] == [(2.0, 2, 4.0)]
    assert "provenance.fused_hours" in calls
    assert calls["provenance.energy"] == [(2.0, 2, 2)]
    more = [*fused, document() | {"fused_with": [*seeds, [2, 2]]}]
    for documents, sizes in ((fused, {2}), (more, {2, 3})):
        calls = asked(lambda documents=documents: provenance.fused_texts(documents))
        assert [set(values[0]) for values in calls["provenance.fused"]] == [sizes]
    assert provenance.fused_texts([document()]) == []


def test_the_report_says_that_runs_shared_a_gpu(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, seeds=[0, 1])
    first, second, *_ = made.folders
    for folder, most in ((first, 3), (second, 12)):
        edit_json(
            folder / "run.json",
            lambda found, most=most: found["hardware"].update(processes_on_gpu=most, mps=True),
        )
    calls = asked(lambda: write_report(made))
    assert set(calls["provenance.time_caption"]) == {(False, 12, True)}


def test_the_report_says_that_seeds_were_trained_as_one_model(tmp_path, page):
    made = make_experiment(tmp_path, sizes=SIZES, seeds=[0, 1])
    group = [[init, seed, seed] for seed in (0, 1) for init in ("pretrained", "random")]
    for folder in made.folders:
        edit_json(folder / "run.json", lambda found: found.update(fused_with=group))
    calls = asked(lambda: write_report(made))
    assert all(set(sizes) == {4} for (sizes,) in calls["provenance.fused"])
    assert set(calls["provenance.time_caption"]) == {(True, 1, False)}
    fused = (made.experiment / "report.html").read_text(encoding="utf-8")
    # in the glossary
    assert "their weights are stacked" in fused
    assert "their weights are stacked" not in page


def test_energy_is_told_with_how_many_runs_know_it():
    documents = [document("cuda: H", energy=1.8e6), document("cuda: H")]
    assert asked(lambda: provenance.cost_texts(documents))["provenance.energy"] == [(0.5, 1, 2)]


def test_energy_that_no_run_knows_is_not_zero():
    ((_, known, runs),) = asked(lambda: provenance.cost_texts([document()]))["provenance.energy"]
    assert (known, runs) == (0, 1)


def test_versions_tell_what_is_not_installed_and_the_commit():
    blocks = provenance.version_section([document()], "def")
    assert [tuple(row) for row in blocks[1].rows] == [("torch", "2.13.0"), ("fairseq", "not installed")]
    calls = asked(lambda: provenance.version_section([document()], "def"))
    ((known, every, own),) = calls["provenance.commits"]
    assert (list(known), every, own) == (["abc"], True, "def")


@pytest.mark.parametrize(
    ("commits_of_runs", "own", "known"), [([None], None, []), (["abc", None], "def", ["abc"])]
)
def test_a_commit_that_is_not_known_is_said(commits_of_runs, own, known):
    documents = [document() | {"git_commit": commit} for commit in commits_of_runs]
    calls = asked(lambda: provenance.version_section(documents, own))
    ((found, every, told),) = calls["provenance.commits"]
    assert (list(found), every, told or None) == (known, False, own)


def test_outside_a_repository_no_commit_is_known(tmp_path):
    assert commits.git_commit(tmp_path) is None


def test_a_report_needs_no_pytorch():
    asked = "import sys; from seedbed.report import report, summary; sys.exit('torch' in sys.modules)"
    folder = Path(report.__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", asked], cwd=folder, check=False).returncode == 0


def test_the_configuration_is_yaml_that_reads_back(made, page):
    grid = {"seeds": (0, 1), "datasets": ["d"], "models": ["m"], "recipes": ["r"]}
    config = {
        "experiment": "é",
        "results": "/home/r",
        "mirror": None,
        "lock": "l.json",
        "grid": grid,
        "recipes": {"r": {"epochs": 1}, "other": {}},
    }
    config |= {"datasets": {"d": {"source": "s"}, "e": {"source": "t"}}, "models": {"m": {"source": "u"}}}
    config |= {"sources": {name: {"kind": "local"} for name in "stu"}}
    blocks = provenance.provenance_section(*read(made), config)
    (details,) = (block for block in blocks if isinstance(block, Details))
    (code,) = details.blocks
    assert isinstance(code, Code)
    shown = yaml.safe_load(code.text)
    assert shown["experiment"] == "é"
    assert not {"results", "mirror", "lock"} & set(shown)
    assert shown["grid"]["seeds"] == [0, 1]
    used = {kind: list(shown[kind]) for kind in ("datasets", "models", "recipes", "sources")}
    assert used == {"datasets": ["d"], "models": ["m"], "recipes": ["r"], "sources": ["s", "u"]}


# --- limits ---


def limits_of(folder, **options) -> limits.Limits:
    made = make_experiment(folder, sizes=SIZES, frameworks=["fairseq"], **{"seeds": [0, 1], **options})
    aggregate(made)
    return limits.find(*read(made))


def test_limits_hold_sizes_seeds_leaks_and_collapsed_runs(made, page):
    found = limits.find(*read(made))
    assert found.test_sizes == {"reviews": 400}
    assert found.leaked == {"reviews": 1}
    assert found.fewest_seeds == found.coverage.seeds == found.coverage_of_choice.seeds == 3
    assert (found.runs, found.collapsed) == (24, 1)
    assert found.swept
    assert found.own_best


def test_limits_of_an_experiment_without_leaks_and_sweep(tmp_path):
    found = limits_of(tmp_path)
    assert (found.leaked, found.swept, found.own_best, found.recipes) == ({}, False, False, 1)
    assert (found.collapsed, found.several_frameworks, found.coverage_of_choice) == (0, False, None)


def test_limits_tell_of_clusters_in_place_of_repeated_texts(tmp_path):
    ids = {split: [f"{split}-{index}" for index in range(size)] for split, size in SIZES.items()}
    clusters = {
        split: {"Zola": names[:10], "Sand": names[10:15], "Hugo": names[15:]} for split, names in ids.items()
    }
    made = make_experiment(tmp_path, sizes=SIZES, frameworks=["fairseq"], seeds=[0, 1], clusters=clusters)
    aggregate(made)
    experiment, others = read(made)
    repeated = others.audit[0] | {"split": "test", "check": "repeated: near", "count": 3}
    others = replace(others, audit=[*others.audit, repeated])
    found = limits.find(experiment, others)
    assert found.clusters == {"reviews": limits.Clusters("author", 3)}
    assert found.repeated == {}
    told = " ".join(limits.limits(experiment, others))
    assert "3 on reviews (column `author`)" in told
    assert "too narrow" in told
    assert not replace(found.clusters["reviews"], number=20).few


def test_without_a_pretrained_init_nothing_is_said_of_checkpoints(tmp_path):
    assert limits_of(tmp_path, inits=["random"]).pretrained == []


def test_differences_without_an_interval_are_counted(tmp_path):
    found = limits_of(tmp_path, seeds=[0])
    assert (found.differences, found.without_interval, found.fewest_seeds) == (1, 1, 0)


def test_coverage_is_that_of_the_simulations_with_as_many_seeds_or_fewer(tmp_path):
    (tmp_path / "coverage.csv").write_text(
        "world,seeds,primary_coverage_percent,t_coverage_percent\n"
        "a,3,91.5,89.25\nb,3,95.0,94.5\na,5,94.0,90.0\ncollapses,3,71.0,73.0\n"
    )
    (tmp_path / "crossed.csv").write_text(
        "init_seeds,data_seeds,primary_coverage_percent\n2,2,90.0\n3,5,95.5\n5,3,96.0\n"
    )

    def simulated(seeds, level, study="coverage"):
        return limits.simulated(seeds, level, study, tmp_path)

    # collapses stand apart
    of_three = limits.Coverage(3, 0.95, (91.5, 95.0), (89.25, 94.5), (71.0, 71.0))
    assert simulated(4, 0.95) == of_three
    assert simulated(5, 0.95) == limits.Coverage(5, 0.95, (94.0, 94.0), (90.0, 90.0))
    assert simulated(3, 0.95, "crossed") == limits.Coverage(3, 0.95, (95.5, 96.0))
    assert simulated(2, 0.95) is None
    assert simulated(4, 0.9) is None
    assert simulated(4, 0.95, "selection") is None


# --- statistics ---


def test_more_statistics_of_every_recipe_are_folded_away(made, page):
    found, other = read(made)
    blocks = sections_accuracy.accuracy_section(found, other)
    (details,) = (block for block in blocks if isinstance(block, Details))
    (table,) = details.blocks
    rows = [row for row in found.summary if row["selection"] == "equal"]
    columns = {cell_text(header): index for index, header in enumerate(table.header)}
    assert len(table.rows) == len(rows) == 8
    for row, line in zip(rows, table.rows, strict=True):
        assert line[columns["median (%)"]].value == pytest.approx(100 * row["median"])
        assert line[columns["min to max (%)"]].copied == (100 * row["min"], 100 * row["max"])
        best = line[columns["best validation accuracy of these seeds (%)"]]
        assert best.value == pytest.approx(100 * row["validation_best"])
        spread = line[columns["sd of seeds on new examples (points)"]]
        assert spread.value == pytest.approx(100 * row["sd_new_examples"])
    assert "test accuracy without collapsed (%)" in columns


# --- leaks ---


def test_leaks_from_two_splits_are_told_apart_and_their_overlap_counted():
    counts = {"also in train: exact": 50, "also in train: near": 2, "also in validation: exact": 3}
    audit = [
        {"dataset": "reviews", "split": "test", "check": check, "count": number}
        for check, number in counts.items()
    ]
    by_split = sections_data.leaks_by_split(audit, "reviews")
    assert by_split == {"train": 52, "validation": 3}
    assert sections_data.leaks_by_split(audit[:2], "reviews") == {}
    for leaked, told in (
        (54, " leaked (52 from training, 3 from validation, of which 1 from both); "),
        (55, " leaked (52 from training, 3 from validation); "),
    ):
        found = sections_data.Leak("reviews", leaked, 100, by_split, dropped=False)
        assert told in sections_data.WORDS.say("leak", found)


# --- many ---


def test_a_long_table_says_how_many_rows_are_left_out():
    table = Table("t", ["a"], [[number] for number in range(1203)])
    shown, told = parts.capped(table, "rows", "runs.csv")
    assert len(shown.rows) == 200
    assert told.text == "The first 200 rows; 1,003 more stand in runs.csv."
    assert parts.capped(shown, "rows", "runs.csv") == [shown]


def test_a_long_list_of_warnings_says_how_many_are_left_out(made, page):
    experiment = experiment_of(made)
    run = changed(experiment.runs[0], collapsed=True)
    many = type(experiment)([run] * 45, experiment.summary, experiment.contrasts, experiment.reporting)
    folded = (block for block in sections_accuracy.warning_section(many) if isinstance(block, Details))
    ((bullets,),) = (block.blocks for block in folded)
    assert len(bullets.items) == 21
    assert bullets.items[-1] == "and 25 more, in runs.csv"


@pytest.mark.parametrize("text", ["**not bold**", "`code`", "[a](b)", "a plain text"])
def test_texts_of_the_data_are_shown_as_they_are(text):
    shown = parts.literal(text)
    assert "".join(span.text for span in parts.spans(shown)) == text


def test_the_subtitle_says_how_large_the_experiment_is(made):
    seconds = sum(run.total_seconds for run in experiment_of(made).runs)
    minutes = count(round(seconds / 60), "minute")
    assert report.subtitle(experiment_of(made)) == (
        f"Experiment synthetic: 24 runs ({minutes}), 2 recipes, 3 seeds a side"
    )
