"""The report: what the page holds, its numbers worked through, its limits, and that it stays small."""

import re
from html import unescape

import pytest
import yaml
from builders_report import MODEL, aggregate, read, write_report
from synthetic import learning_rate_levels, make_experiment

from seedbed import (
    limits,
    parameters,
    provenance,
    report,
    report_parts,
    sections_accuracy,
    sections_models,
    sections_predictions,
    tables,
)
from seedbed.document import Bullets, Code, Details, Paragraph, Table, cell_text
from seedbed.files import write_jsonl

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


@pytest.fixture(scope="module")
def page(made) -> str:
    return write_report(made)


@pytest.fixture(scope="module")
def plain(page) -> str:
    """What a reader sees of the page, without tags."""
    body = re.sub(r"<(style|script)\b.*?</\1>", " ", page.split("<body", 1)[1], flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def headings(page: str, level: int) -> list[str]:
    found = re.findall(rf"<h{level}\b[^>]*>(.*?)</h{level}>", page, flags=re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]+>", "", text)).split()) for text in found]


# --- the page ---


def test_the_answer_comes_first_then_its_strength(page):
    assert headings(page, 1) == ["Does pretraining help? Experiment synthetic"]
    assert page.index("pretrained minus random test accuracy is ") < page.index("<h2")
    assert headings(page, 2)[0] == "How sure: what these seeds can and cannot show"


def test_every_section_is_there_in_order(page):
    wanted = [
        "Test accuracy",
        "Differences in test accuracy",
        "Figures",
        "What still differs between the frameworks",
        "Are the frameworks equivalent?",
        "Pairs of runs",
        "What the seed changes",
        "Calibration and confusion",
        "The data",
        "Parameters",
        "Architecture",
        "The recipe, and what both frameworks call its options",
        "Warnings: collapsed and weak runs",
        "Each side at its best: the sweep",
        "Provenance",
        "Limits: what these numbers do not show",
        "Glossary",
    ]
    found = headings(page, 2)
    assert [title for title in found if title in wanted] == wanted


def test_every_figure_stands_once_with_its_caption(made, plain):
    for name in [*made.plan.figures(), "data_audit"]:
        assert plain.count(f"Caption of {name}.") == 1


def test_the_page_asks_no_network_for_anything(page):
    loaded = re.findall(r'\b(?:src|srcset|data|poster)="([^"]*)"|<link\b[^>]*href="([^"]*)"', page)
    assert loaded
    assert all("".join(address).startswith("data:") for address in loaded)
    assert "@import" not in page


def test_the_page_does_not_depend_on_the_time(made, page):
    assert write_report(made) == page


def test_names_of_the_data_are_no_markup(made, page, plain):
    (first, *_) = tables.read_table(made.outputs["never_right"])
    number = first["example"].removeprefix("test-")
    assert f"Text <b>{number}</b> of `many`." in plain
    assert f"<b>{number}</b>" not in page


def test_the_architectures_and_the_configuration_can_be_opened(made, plain):
    assert "small, as fairseq prints it" in plain
    assert "(architecture_fairseq)" in plain
    assert "small, as transformers prints it" in plain
    assert "experiment: synthetic" in plain


# --- examples ---


def test_hard_examples_are_shortened_and_limited(tmp_path):
    path = tmp_path / "reviews" / "test.jsonl"
    write_jsonl(path, [{"id": f"t{k}", "text": "mot " * 200, "label": 0} for k in range(50)])
    rows = [{"dataset": "reviews", "example": f"t{k}"} for k in range(50)]
    texts = sections_predictions.read_hard_texts(rows, [path])
    assert set(texts) == {("reviews", f"t{k}") for k in range(20)}
    assert all(len(text) <= 240 and text.endswith("mot…") for text in texts.values())


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
    assert sections_predictions.shorten(text, 10) == shown


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


# --- calibration ---


def test_calibration_tells_how_often_models_are_too_sure(made, page):
    found = read(made)
    blocks = sections_predictions.calibration_section(found)
    (table,) = (block for block in blocks if isinstance(block, Table))
    (note,) = (block for block in blocks if isinstance(block, Paragraph))
    excess = table.header.index("excess (points)")
    over = sum(row[excess].value > 0 for row in table.rows)
    assert f"in {over} of {len(table.rows)} rows" in note.text
    first = found.experiment.summary[0]
    assert cell_text(table.rows[0][-1]) == f"{100 * first['ece']:.1f}"
    share = table.header.index("accuracy (%)")
    assert table.rows[0][share].value == pytest.approx(100 * first["mean"])


def test_without_probabilities_there_is_no_calibration_table(made, page):
    found = read(made)
    found.tables["calibration"].clear()
    assert not any(isinstance(block, Table) for block in sections_predictions.calibration_section(found))


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
    told = provenance.cost_texts([document(total=5400.0), document("cuda: H", 7200.0, energy=3.6e6)])
    assert told[0].startswith("2.0 GPU-hours: the seconds of 1 run on a GPU")
    assert told[1].startswith("1.5 CPU-hours: the seconds of 1 run without a GPU")
    assert told[1].endswith("3.0 core-hours.")


def test_energy_is_an_upper_bound_and_says_of_how_many_runs():
    told = provenance.cost_texts([document("cuda: H", energy=1.8e6), document("cuda: H")])[-1]
    assert told.startswith("At most 0.50 kWh")
    assert "over the 1 of 2 runs that have one" in told
    assert "counts the whole card, whoever uses it" in told


def test_energy_that_no_run_knows_is_not_zero():
    assert provenance.cost_texts([document()])[-1].startswith("Energy is not known")


def test_versions_tell_what_is_not_installed_and_the_commit():
    blocks = provenance.version_section([document()])
    assert [tuple(row) for row in blocks[1].rows] == [("torch", "2.13.0"), ("fairseq", "not installed")]
    assert blocks[2].text == "Workflow at commit `abc`."


def test_the_configuration_is_yaml_that_reads_back(made, page):
    config = {"experiment": "e", "grid": {"seeds": (0, 1)}, "labels": ["é", "no"]}
    blocks = provenance.provenance_section(read(made), config)
    (details,) = (block for block in blocks if isinstance(block, Details))
    (code,) = details.blocks
    assert isinstance(code, Code)
    assert yaml.safe_load(code.text) == {"experiment": "e", "grid": {"seeds": [0, 1]}, "labels": ["é", "no"]}


# --- limits ---


def told_limits(folder, **options) -> str:
    made = make_experiment(folder, sizes=SIZES, frameworks=["fairseq"], **{"seeds": [0, 1], **options})
    aggregate(made)
    return "\n".join(limits.limits(read(made)))


def test_limits_tell_sizes_seeds_leaks_and_collapsed_runs(made, page):
    rows = "\n".join(limits.limits(read(made)))
    assert "examples: reviews 400" in rows
    assert "1 on reviews" in rows
    assert "as few as 3 seeds a side" in rows
    assert "1 of 24 runs collapsed" in rows
    assert "only among the values that were swept" in rows


def test_limits_of_an_experiment_without_leaks_and_sweep(tmp_path):
    told = told_limits(tmp_path)
    assert "No test example stands in training or validation" in told
    assert "Nothing was swept: 1 recipe for both inits" in told
    assert "collapsed" not in told
    assert "frameworks" not in told


def test_without_a_pretrained_init_nothing_is_said_of_checkpoints(tmp_path):
    assert "start from one checkpoint" not in told_limits(tmp_path, inits=["random"])


def test_differences_without_an_interval_are_counted(tmp_path):
    told = told_limits(tmp_path, seeds=[0])
    assert "1 of 1 difference have no interval" in told
    assert "rest on as few as" not in told


def test_coverage_is_that_of_the_simulations_with_as_many_seeds_or_fewer(tmp_path):
    path = tmp_path / "coverage.csv"
    path.write_text("seeds,primary_coverage_percent\n3,91.5\n3,95.25\n5,94.0\n")
    told = limits.simulated_coverage(4, 0.95, path)
    assert "In simulations with 3 seeds a side" in told
    assert "in 91.5% to 95.2% of the cases, where 95% were meant" in told
    assert limits.simulated_coverage(2, 0.95, path) == ""
    assert limits.simulated_coverage(4, 0.9, path) == ""


# --- many ---


def test_a_long_table_says_how_many_rows_are_left_out():
    table = Table("t", ["a"], [[number] for number in range(1203)])
    shown, told = report_parts.capped(table, "rows", "runs.csv")
    assert len(shown.rows) == 200
    assert told.text == "The first 200 rows; 1,003 more stand in runs.csv."
    assert report_parts.capped(shown, "rows", "runs.csv") == [shown]


def test_a_long_list_of_warnings_says_how_many_are_left_out(made, page):
    experiment = read(made).experiment
    run = experiment.runs[0] | {"collapsed": True}
    many = type(experiment)([run] * 45, experiment.summary, experiment.contrasts, experiment.reporting)
    (bullets,) = (block for block in sections_accuracy.warning_section(many) if isinstance(block, Bullets))
    assert len(bullets.items) == 21
    assert bullets.items[-1] == "and 25 more, in runs.csv"


@pytest.mark.parametrize("text", ["**not bold**", "`code`", "[a](b)", "a plain text"])
def test_texts_of_the_data_are_shown_as_they_are(text):
    shown = report_parts.literal(text)
    assert "".join(span.text for span in report_parts.spans(shown)) == text


def test_the_subtitle_counts_what_was_combined(made, page):
    told = report.subtitle(read(made))
    assert told == "1 dataset × 1 model × 2 recipes × 2 frameworks × 2 inits × 3 seeds = 24 runs"
