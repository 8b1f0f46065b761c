"""The summary: each section from the tables behind it; the tables for other documents; numbers in words."""

import csv
import re
from pathlib import Path

import pytest
from builders_report import make_summary, read, write_summary
from synthetic import edit_csv, edit_json, learning_rate_levels, make_experiment

from seedbed import duplicates, export, sections_contrasts, sections_models, tables, words
from seedbed.document import Cell, Table, cell_text

SIZES = {"validation": 200, "test": 400}
SWEEP = {"sweep": {"learning_rate": [1e-5, 1e-4, 3e-4]}}


def levels(pretrained: float, random: float):
    return lambda run: {"pretrained": pretrained, "random": random}[run.init]


def section(text: str, title: str) -> str:
    """The part of a summary below a heading of level 2."""
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


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
    return write_summary(made)


def test_the_answer_stands_above_the_first_heading(text):
    title, answer, *_ = text.split("\n\n")
    assert title == "# Does pretraining help? Experiment `synthetic`"
    assert answer.startswith("**")
    assert "pretrained minus random test accuracy is " in answer.split("**")[1]


def test_power_is_told_in_words_and_as_a_table(text):
    found = section(text, "How sure: what these seeds can and cannot show")
    assert "- On `reviews`, fairseq, recipe `lab`: 3 seeds a side" in found
    assert "detectable" in found.split("| --- ")[0].lower()


def test_accuracies_show_every_seed_and_mark_the_odd_ones(text):
    row = next(line for line in text.splitlines() if line.startswith("| fairseq | random | lab | 3 |"))
    found = cells(row)
    assert re.fullmatch(r"\d\d\.\d% ± \d+\.\d%", found[4])
    assert re.fullmatch(r"5\d\.\d%‡, 50\.0%†, [67]\d\.\d%", found[6])
    assert found[8] == "1 of 3"
    assert re.fullmatch(r"6\d\.\d% ± \d+\.\d%", found[9])
    assert "majority class with 50.0%" in text
    assert "bag of words with 82.5%, which is above every mean of the table" in text


def test_of_many_seeds_the_first_ones_are_shown(tmp_path):
    text = make_summary(tmp_path, sizes=SIZES, seeds=list(range(12)), frameworks=["fairseq"])
    line = next(line for line in text.splitlines() if line.startswith("| fairseq | random | lab | 12 |"))
    assert cells(line)[6].count("%") == 10
    assert cells(line)[6].endswith(" and 2 more in runs.csv")


def test_warnings_name_the_runs(text):
    found = section(text, "Warnings: collapsed and weak runs")
    assert "2 runs collapsed" in found
    assert "- `reviews/small/fairseq/random/lab/seed1`: predicts one class, test accuracy 50.0%" in found
    assert "- `reviews/small/transformers/random/lab/seed2`: diverged, test accuracy 0.0%" in found
    assert "2 runs cannot be told from the majority class" in found
    assert re.search(
        r"- `reviews/small/fairseq/random/lab/seed0`: test accuracy 5\d\.\d%, majority class", found
    )


def test_sound_runs_have_no_warnings(tmp_path):
    assert "## Warnings" not in make_summary(tmp_path, sizes=SIZES, seeds=[0, 1])


def test_differences_bear_both_intervals_p_and_seeds(made, text):
    found = section(text, "Differences in test accuracy")
    row = next(row for row in tables.read_table(made.outputs["contrasts"]) if row["family"] == "init")
    intervals = [
        words.points_range(row["ci_low"], row["ci_high"]),
        words.points_range(max(-1, row["t_low"]), min(1, row["t_high"])),
    ]
    line = f"| fairseq | lab | {words.points(row['delta'])} | {' | '.join(intervals)} | "
    assert line + f"{words.p_text(row['p_value'])} | {words.p_text(row['p_holm'])} |" in found
    assert "seeds: 3 pairs" in found
    assert "seeds: 3 and 3, unpaired" in found
    assert "0.25 (paired, 3 and 3 seeds) and 0.10 (unpaired, 3 and 3 seeds)" in found


def test_intervals_are_cut_where_no_difference_can_be(text):
    assert not re.search(r"[+−]1\d\d\.[1-9] ", section(text, "Differences in test accuracy"))


def test_the_families_of_models_and_datasets_name_their_contrast(tmp_path):
    made = make_experiment(
        tmp_path, sizes=SIZES, datasets=("books", "music"), models=("small", "large"), frameworks=["fairseq"]
    )
    found = section(write_summary(made), "Differences in test accuracy")
    assert "### One model minus another" in found
    assert "| fairseq | pretrained | small − large | lab |" in found
    assert "| fairseq | gain on books − gain on music | lab |" in found


def test_equivalence_is_counted_and_inconclusive_is_not_the_same(made, text):
    found = section(text, "Are the frameworks equivalent?")
    rows = [row for row in tables.read_table(made.outputs["contrasts"]) if row["family"] == "framework"]
    told = [row["equivalence"] for row in rows]
    for verdict in set(told):
        assert f"{verdict} in {told.count(verdict)} of {len(told)} comparisons" in found
    assert "no significant difference is not the same as no difference" in found
    assert "| ±1 |" in found
    assert "| ±2 |" in found


def test_one_framework_has_no_equivalence(tmp_path):
    text = make_summary(tmp_path, sizes=SIZES, seeds=[0, 1], frameworks=["fairseq"])
    assert "equivalent" not in text


def test_pairs_of_runs_count_what_mcnemar_decides(made, text):
    found = section(text, "Pairs of runs")
    pairs = [
        row
        for row in tables.read_table(made.outputs["pairs"])
        if row["a"] == "fairseq/pretrained" and row["b"] == "fairseq/random"
    ]
    better = sum(row["p_holm"] < 0.05 and row["only_a_right"] > row["only_b_right"] for row in pairs)
    line = next(line for line in found.splitlines() if line.startswith("| fairseq | lab | 3 |"))
    share = sum(row["only_a_right"] / row["examples"] for row in pairs) / 3
    assert cells(line)[3] == words.percent(share)
    assert cells(line)[5] == f"{better} of 3"
    assert "only pretrained right (%)" in found


def test_a_pair_is_better_on_the_side_that_is_right_more_often():
    pair = {"family": "init", "a": "fairseq/pretrained", "selection": "equal", "recipe_a": "lab"}
    counts = [(30, 5, 0.01), (5, 30, 0.02), (5, 30, 0.04), (12, 11, 0.9)]
    pairs = [
        pair | {"examples": 100, "only_a_right": a, "only_b_right": b, "p_holm": p} for a, b, p in counts
    ]
    line = sections_contrasts.pair_line(pairs, 0.05)
    assert [cell_text(cell) for cell in line] == ["fairseq", "lab", "4", "13.0%", "19.0%", "1 of 4", "2 of 4"]


def test_churn_and_the_examples_that_no_run_gets_right(made, text):
    found = section(text, "What the seed changes")
    row = tables.read_table(made.outputs["churn"])[0]
    assert (
        f"| fairseq | pretrained | lab | 3 | {words.percent(row['changed_share'])} "
        f"| {words.percent(row['mean_disagreement'])} |" in found
    )
    hard = tables.read_table(made.outputs["never_right"])
    told = f"reviews: {len(hard)} of 400 test examples are wrong in every run that did not collapse (10 runs)"
    assert told in found


def test_crossed_seeds_have_their_variance_decomposed(tmp_path):
    seeds = [{"init": i, "data": j} for i in range(2) for j in range(2)]
    text = make_summary(tmp_path, sizes=SIZES, seeds=seeds, frameworks=["fairseq"])
    found = section(text, "Init seed or order of the data?")
    assert "| fairseq | random | lab | all | data seed | 2 | 1 |" in found


def test_seeds_that_are_not_crossed_have_no_variance_section(text):
    assert "Init seed or order of the data?" not in text


def test_the_table_of_a_sweep_marks_what_is_best_on_validation(tmp_path):
    made = make_experiment(tmp_path, accuracy=learning_rate_levels, noise=0.002, recipe=SWEEP, sizes=SIZES)
    text = write_summary(made)
    found = section(text, "Each side at its best: the sweep")
    assert found.count("| **") == 4
    assert "| learning_rate 1e-05 |" in found
    rows = tables.read_table(made.outputs["summary"])
    best = next(row for row in rows if row["selection"] == "best")
    assert (
        f"**{words.percent_sd(best['mean'], best['sd'])} ({words.percent(best['validation_mean'])})**"
        in found
    )
    first = tables.read_table(made.outputs["expected_validation"])[0]
    assert f"| 1 | {words.percent_sd(first['expected'], first['sd'])} |" in found
    assert "(own best)" in section(text, "Test accuracy")
    assert "| own best: " in section(text, "Differences in test accuracy")


def test_both_sides_with_the_same_best_recipe_are_told_so():
    row = {"selection": "best", "recipe_a": "r", "recipe_b": "r"}
    assert sections_contrasts.contrast_recipe(row) == "own best: both r"
    assert sections_contrasts.contrast_recipe(row | {"recipe_b": "s"}) == "own best: r and s"


def test_frameworks_are_shown_side_by_side(text):
    assert "| setting | asked | done by fairseq | done by transformers |" in text
    assert "| order of examples | data seed | fairseq's shuffle | torch's RandomSampler |" in text


def test_parity_parameters_time_and_versions(text):
    told = (
        "reviews, small: the token ids of 200 texts are equal; on 100 of them hidden states differ by 3.8e-06"
    )
    assert told in text
    assert "| total | – | 22,695,936 | 22,695,936 |" in text
    assert re.search(r"\| fairseq \| 6 \| 6\.1 \| [56]\d\.\d \| 8\.0 \| 0\.4 \|", text)
    assert "cpu: Made-up 3000" in text
    assert "| torch | 2.13.0 and 2.12.0 |" in text
    assert "Not all runs were made with the same versions" in text


def test_figures_and_files_are_linked(text):
    assert "(figures/learning_curves.svg)" in text
    assert "[contrasts.csv](contrasts.csv)" in text


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
    text = make_summary(tmp_path, sizes=SIZES, seeds=[0], frameworks=["fairseq"])
    line = next(
        line
        for line in section(text, "Differences in test accuracy").splitlines()
        if line.startswith("| fairseq | lab |")
    )
    assert cells(line)[3:] == ["–", "–", "–", "–"]


def test_one_init_has_no_difference(tmp_path):
    text = make_summary(tmp_path, sizes=SIZES, seeds=[0, 1], inits=["random"], frameworks=["fairseq"])
    assert "Pretrained minus random" not in text
    assert "What these seeds" not in text


# --- leaks and data ---


def test_leaks_are_shown_with_and_without(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, leaked=["test-1", "test-2", "test-30"])
    text = write_summary(made)
    found = section(text, "With and without leaked test examples")
    assert (
        "reviews: 3 test examples of 400 leaked; what resembles them in the training split was trained on."
        in found
    )
    told = {name: tables.read_table(path) for name, path in made.outputs.items()}
    for whole, clean in zip(
        tables.on_test_set(told["summary"]),
        tables.on_test_set(told["summary"], "without leaks"),
        strict=True,
    ):
        shown = [words.percent_sd(row["mean"], row["sd"]) for row in (whole, clean)]
        line = f"| {whole['framework']} | {whole['init']} | lab | {shown[0]} | {shown[1]} | "
        assert line + f"{words.points(clean['mean'] - whole['mean'])} |" in found
    for row in tables.on_test_set(told["contrasts"], "without leaks"):
        if row["family"] == "init":
            interval = words.points_range(row["ci_low"], row["ci_high"])
            assert f"{words.points(row['delta'])} points ({interval}) without leaks" in found
    # the answer and the tables above stay those of the whole test split
    clean = make_summary(tmp_path / "clean", sizes=SIZES)
    assert section(text, "Test accuracy") == section(clean, "Test accuracy")


def test_leaks_of_one_of_several_datasets_bear_its_name(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, datasets=("reviews", "music"), seeds=[0, 1])
    duplicates.write_duplicates(made.plan.per_dataset("duplicates.csv")[1], leak_rows("test-7"))
    edit_csv(
        Path(made.plan.per_dataset("bag_of_words.csv")[1]),
        lambda rows: rows.append({"split": "test", "metric": "accuracy_without_leaks", "value": "0.8"}),
    )
    found = section(write_summary(made), "With and without leaked test examples")
    assert "music: 1 test example of 400 leaked" in found
    assert "### music, small" in found
    assert "reviews" not in found


def test_dropped_leaks_are_said(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, leaked=["test-7"], seeds=[0, 1])
    made.plan.config["datasets"]["reviews"]["drop_leaks"] = True
    assert "in the training split was left out of training (drop_leaks)." in write_summary(made)


def test_where_all_leaked_the_summary_says_so(tmp_path):
    every = [f"test-{number}" for number in range(SIZES["test"])]
    text = make_summary(tmp_path, sizes=SIZES, leaked=every, seeds=[0, 1])
    assert "400 test examples of 400 leaked" in text
    assert "nothing is left to measure without leaks" in text


def leak_rows(*names):
    return [
        {"split": "test", "example": name, "with_split": "train", "with_example": "train-0"}
        | {"kind": "exact", "similarity": 1.0, "same_label": True}
        for name in names
    ]


def test_no_leak_no_section(text):
    assert "## With and without leaked" not in text


@pytest.mark.parametrize(("loss", "warned"), [(2.58, False), (9.7, True)])
def test_the_masked_lm_loss_is_told_beside_the_frequencies(loss, warned):
    found = {"texts": 200, "token_ids_equal": True, "compared": 100, "largest_difference": 4e-6}
    found |= {"tolerance": 1e-4, "masked_lm": {"loss": loss, "frequency_loss": 7.09, "tokens": 900}}
    (text,) = sections_models.parity_section([("reviews", "small", found)])[1].items
    assert f"masked tokens with a loss of {loss:.2f} nats, where guessing by frequency has 7.09" in text
    assert ("mean nothing to this checkpoint" in text) == warned


# --- tables for other documents ---


@pytest.fixture(scope="module")
def exported(made, text):
    formats = [f"{name}_{ending}" for name in ("summary", "contrasts") for ending in ("csv", "md", "tex")]
    outputs = {name: made.experiment / "tables" / name.replace("_", ".") for name in formats}
    export.write_tables(made.outputs["summary"], made.outputs["contrasts"], made.plan.reporting(), outputs)
    return {name: path.read_text(encoding="utf-8") for name, path in outputs.items()}


def test_exported_numbers_have_the_unit_of_their_header(made, exported):
    rows = list(csv.DictReader(exported["contrasts_csv"].splitlines()))
    for row, fraction in zip(rows, tables.read_table(made.outputs["contrasts"]), strict=True):
        assert float(row["difference (points)"]) == pytest.approx(100 * fraction["delta"], abs=1e-5)
        assert float(row["exact p"]) == fraction["p_value"]
    summary = next(csv.DictReader(exported["summary_csv"].splitlines()))
    first = tables.read_table(made.outputs["summary"])[0]
    assert float(summary["mean test accuracy (%)"]) == pytest.approx(100 * first["mean"], abs=1e-5)
    assert float(summary["sample sd (points)"]) == pytest.approx(100 * first["sd"], abs=1e-5)


def test_every_exported_accuracy_and_difference_names_its_unit(exported):
    header = next(csv.reader(exported["summary_csv"].splitlines()))
    fractions = ("mean", "sd", "interval", "median", "min", "max", "best", "error", "ECE", "class", "words")
    for name in header:
        if any(word in name for word in fractions):
            assert re.search(r"\((%|points)\)$", name), name


def test_exported_markdown_and_latex_hold_the_same_numbers(exported):
    mean = next(csv.DictReader(exported["summary_csv"].splitlines()))["mean test accuracy (%)"]
    shown = f"{float(mean):.1f}"
    assert f"| {shown} |" in exported["summary_md"]
    assert f" & {shown} & " in exported["summary_tex"]
    assert r"\toprule" in exported["summary_tex"]
    assert r"mean test accuracy (\%)" in exported["summary_tex"]


def test_a_column_with_one_value_goes_into_the_caption_and_an_empty_one_away():
    rows = [["books", "a", Cell("1.0", 1.0), None], ["books", "b", Cell("1.0", 1.0), None]]
    short = export.shorten(Table("t", ["dataset", "init", "sd (points)", "ECE"], rows, "Caption.", (2, 3)))
    assert list(short.header) == ["init", "sd (points)"]
    assert short.caption == "Caption. All rows: dataset books."
    assert list(short.right) == [1]


def test_latex_has_the_columns_that_fit_on_a_page(exported):
    columns = exported["contrasts_tex"].split(r"\toprule")[1].split("\n")[1].split(" & ")
    assert "difference (points)" in [column.strip() for column in columns]
    assert len(columns) <= 14
    assert "ASO" not in exported["contrasts_tex"]
    assert "ASO" in exported["contrasts_md"]
    assert "dataset of b" not in exported["contrasts_md"]


def test_a_missing_value_is_an_empty_cell_and_never_zero(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, seeds=[0], frameworks=["fairseq"])
    write_summary(made)
    table = export.make_table(
        "contrasts", export.contrast_columns("95%"), tables.read_table(made.outputs["contrasts"]), ""
    )
    row = next(csv.DictReader(export.to_csv(table).splitlines()))
    assert row["exact p"] == row["95% Multi-Bootstrap, low (points)"] == ""
    assert row["difference (points)"] != ""


def test_findings_hold_every_table(made, text):
    found = read(made)
    assert len(found.documents) == 12
    assert set(found.parameters) == {"small"}
    assert [place[:2] for place in found.parity] == [("reviews", "small")]


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
        (words.points_range(-0.01, 0.02), "−1.0 to +2.0"),
        (words.percent_range(-0.2, 1.1), "0.0% to 100.0%"),
        (words.percent_range(None, None), "–"),
        (words.percent_sd(0.794, 0.0081), "79.4% ± 0.8%"),
        (words.percent_sd(0.794, None), "79.4%"),
        (words.p_text(0.25), "0.25"),
        (words.p_text(0.0079365), "0.0079"),
        (words.p_text(5.96e-8), "6e-08"),
        (words.p_text(1.0), "1.00"),
        (words.join(["a", "b", "c"]), "a, b and c"),
        (words.count(1, "seed"), "1 seed"),
        (words.count(1000, "run"), "1,000 runs"),
    ],
)
def test_numbers_in_words(made, expected):
    assert made == expected
