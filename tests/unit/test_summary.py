"""The summary in words: each verdict from the numbers that call for it; and what the terminal shows."""

import re
from pathlib import Path

import pytest
from synthetic import Synthetic, edit_csv, edit_json, learning_rate_levels, make_experiment

import show
from seedbed import answer, duplicates, summary, tables, words
from seedbed.errors import SeedbedError
from seedbed.statistics import seeds_needed, smallest_difference

SIZES = {"validation": 200, "test": 400}
SWEEP = {"sweep": {"learning_rate": [1e-5, 1e-4, 3e-4]}}
DIFFERENCE = r"[+−]?\d+\.\d points"


def write(made: Synthetic) -> str:
    plan = made.plan
    reporting = plan.reporting()
    made.aggregate()
    path = made.experiment / "summary.md"
    parity, parameters = plan.per_pair("parity.json"), plan.per_model("parameters.csv")
    runs = plan.run_files("run.json")
    summary.write_summary(
        made.outputs,
        made.experiment / "data_audit.csv",
        runs,
        parity,
        parameters,
        reporting,
        plan.figures(),
        path,
    )
    return path.read_text()


def make(folder, **options) -> str:
    return write(make_experiment(folder, **{"sizes": SIZES, **options}))


def first_paragraph(text: str) -> str:
    return text.split("\n\n")[1]


def levels(pretrained: float, random: float):
    return lambda run: {"pretrained": pretrained, "random": random}[run.init]


# --- the answer ---


def test_pretraining_helps(tmp_path):
    text = first_paragraph(make(tmp_path))
    assert text.startswith("**Pretraining helps on reviews: pretrained minus random test accuracy is +")
    number = rf"\+{DIFFERENCE[5:]} with {{}} \(95% interval \+\d+\.\d to \+\d+\.\d, 3 seeds a side\)"
    assert re.search(number.format("fairseq"), text)
    assert re.search(number.format("transformers"), text)
    assert "cannot" not in text


def test_pretraining_hurts(tmp_path):
    text = first_paragraph(make(tmp_path, accuracy=levels(0.6, 0.75)))
    assert text.startswith("**Pretraining hurts on reviews: pretrained minus random test accuracy is −")


def test_runs_that_cannot_tell_say_how_many_seeds_could(tmp_path):
    made = make_experiment(
        tmp_path, accuracy=levels(0.7, 0.7), noise=0.03, sizes=SIZES, frameworks=["fairseq"]
    )
    text = first_paragraph(write(made))
    assert text.startswith("**These runs cannot tell the inits apart on reviews: ")
    runs = tables.read_table(made.outputs["runs"])
    values = {
        init: [run["test_accuracy"] for run in runs if run["init"] == init]
        for init in ("pretrained", "random")
    }
    gaps = [a - b for a, b in zip(*values.values(), strict=True)]
    centre, spread = sum(gaps) / 3, summary.statistics.sample_sd(gaps)
    needed = seeds_needed(centre, spread, 0.05, 0.8, paired=True)
    detectable = smallest_difference(spread, 3, 0.05, 0.8, paired=True)
    assert f"about {needed:,} seeds a side with fairseq to settle (power 80%)" in text
    assert f"3 seeds a side can detect no less than {100 * detectable:.1f} points with fairseq" in text
    assert "are rough" in text


def test_frameworks_that_differ_in_their_verdict(tmp_path):
    def accuracy(run):
        return 0.7 if run.framework == "fairseq" else levels(0.8, 0.65)(run)

    text = first_paragraph(make(tmp_path, accuracy=accuracy, noise=0.02))
    assert text.startswith(
        "**On reviews, these runs cannot tell the inits apart with fairseq and pretraining helps with "
        "transformers: pretrained minus random test accuracy is "
    )
    assert "no evidence that the frameworks do" in text


def test_one_seed_makes_no_claim(tmp_path):
    text = make(tmp_path, seeds=[0])
    assert first_paragraph(text).startswith("**One seed a side cannot tell the inits apart on reviews: ")
    assert "(1 seed a side, no interval)" in text
    assert "95% interval +" not in text


def test_one_init_has_no_contrast(tmp_path):
    text = make(tmp_path, inits=["random"], frameworks=["transformers"])
    assert first_paragraph(text).startswith(
        "**This experiment has only the random init, so it cannot say whether "
    )
    assert "Pretrained minus random" not in text
    assert re.search(r"6\d\.\d% ± \d\.\d% \(transformers, reviews, small, lab, 3 seeds\)", text)


def test_several_datasets_are_counted_and_listed(tmp_path):
    def accuracy(run):
        return levels(0.8, 0.7)(run) if run.dataset == "books" else 0.7

    text = make(tmp_path, datasets=("books", "music"), accuracy=accuracy, noise=0.015)
    paragraphs = text.split("\n\n")
    assert paragraphs[1].startswith("**Pretraining helps in 2 of 4 comparisons")
    assert "these runs cannot tell the inits apart in 2 of 4 comparisons" in paragraphs[1]
    assert paragraphs[2].startswith("- **Pretraining helps on books: ")
    assert "\n- **These runs cannot tell the inits apart on music: " in paragraphs[2]


def test_inits_that_are_the_same_seed_by_seed(tmp_path):
    inits = ("pretrained", "random")
    folders = [f"reviews/small/fairseq/{init}/lab/seed{seed}" for init in inits for seed in range(3)]
    text = first_paragraph(make(tmp_path, collapsed=folders, frameworks=["fairseq"]))
    assert text.startswith("**Seeds without any spread cannot tell the inits apart on reviews: ")
    assert "is 0.0 points with fairseq (3 seeds a side, without spread, no interval)" in text
    assert "every seed shows the same difference" in text
    assert "6 of the 6 runs behind these numbers collapsed" in text


# --- sweeps ---


def test_a_sweep_tells_both_differences_and_that_undertraining_made_most_of_the_first(tmp_path):
    def accuracy(run):
        rate = dict(run.swept)["learning_rate"]
        return {"pretrained": {1e-5: 0.78, 1e-4: 0.84}, "random": {1e-5: 0.66, 1e-4: 0.80}}[run.init].get(
            rate, 0.70
        )

    text = first_paragraph(make(tmp_path, accuracy=accuracy, noise=0.004, recipe=SWEEP))
    sentence = text.split("**")[1]
    assert sentence.startswith(
        "Pretraining helps on reviews when each init has its own best recipe on validation: "
    )
    assert "; at the equal recipe `lab.learning_rate=1e-05` it is +1" in sentence
    assert len(re.findall(DIFFERENCE, sentence)) == 4
    told = "With fairseq most of the difference at the equal recipe was undertraining of the random init: "
    assert re.search(
        told + rf"it falls from \+1\d\.\d to \+\d\.\d {DIFFERENCE[-6:]} \(95% interval of the change −", text
    )
    assert re.search(r"the random init gains \+1\d\.\d points \(`lab\.learning_rate=0\.0001`\)", text)


def test_a_sweep_that_changes_nothing_blames_nothing(tmp_path):
    text = first_paragraph(make(tmp_path, noise=0.01, recipe=SWEEP))
    assert "undertraining" not in text
    assert "due to that recipe" not in text


def test_a_lower_learning_rate_is_not_called_undertraining(tmp_path):
    def accuracy(run):
        rate = dict(run.swept)["learning_rate"]
        return 0.8 if run.init == "pretrained" else {1e-5: 0.79, 1e-3: 0.6}[rate]

    recipe = {"sweep": {"learning_rate": [1e-3, 1e-5]}}
    text = first_paragraph(make(tmp_path, accuracy=accuracy, noise=0.004, recipe=recipe))
    assert "undertraining" not in text
    assert re.search(
        "With fairseq (most|all) of the difference at the equal recipe was due to that recipe: ", text
    )


def test_both_best_at_the_equal_recipe(tmp_path):
    def accuracy(run):
        return levels(0.8, 0.7)(run) - 0.1 * (dict(run.swept)["learning_rate"] != 1e-5)

    text = make(tmp_path, accuracy=accuracy, noise=0.004, recipe=SWEEP)
    assert "With fairseq both inits do best at that same recipe." in text


def test_one_seed_in_a_sweep_makes_no_claim_about_the_recipe(tmp_path):
    text = first_paragraph(make(tmp_path, accuracy=learning_rate_levels, recipe=SWEEP, seeds=[0]))
    assert "undertraining" not in text
    assert re.search(r"takes the difference from \+\d+\.\d to \+\d+\.\d points \(no interval\)", text)


def test_the_table_of_a_sweep_marks_what_is_best_on_validation(tmp_path):
    made = make_experiment(tmp_path, accuracy=learning_rate_levels, noise=0.002, recipe=SWEEP, sizes=SIZES)
    section = write(made).split("## Sweep")[1].split("\n## ")[0]
    assert section.count("| **") == 4
    assert "| learning_rate 1e-05 |" in section
    rows = tables.read_table(made.outputs["summary"])
    best = next(row for row in rows if row["selection"] == "best")
    cell = f"**{words.percent_sd(best['mean'], best['sd'])} ({words.percent(best['validation_mean'])})**"
    assert cell in section


# --- the sections ---


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> str:
    made = make_experiment(
        tmp_path_factory.mktemp("made"),
        accuracy=lambda run: 0.52 if run.init == "random" and run.init_seed == 0 else levels(0.8, 0.7)(run),
        sizes=SIZES,
        collapsed=["reviews/small/fairseq/random/lab/seed1"],
        diverged=["reviews/small/transformers/random/lab/seed2"],
    )
    edit_json(made.folders[-1] / "run.json", lambda document: document["versions"].update(torch="2.12.0"))
    return write(made)


def test_accuracies_show_every_seed_and_mark_the_odd_ones(text):
    row = next(line for line in text.splitlines() if line.startswith("| fairseq | random | lab |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert re.fullmatch(r"\d\d\.\d% ± \d+\.\d% \(n = 3\)", cells[3])
    assert re.fullmatch(r"5\d\.\d%‡, 50\.0%†, 7\d\.\d%|5\d\.\d%‡, 50\.0%†, 6\d\.\d%", cells[5])
    assert cells[6] == "1 of 3"
    assert re.fullmatch(r"6\d\.\d% ± \d+\.\d%", cells[7])
    assert "majority class with 50.0%" in text
    assert "bag of words with 82.5%, which is above every mean of the table" in text


def test_warnings_name_the_runs(text):
    section = text.split("## Warnings")[1].split("\n## ")[0]
    assert "2 runs collapsed" in section
    assert "- `reviews/small/fairseq/random/lab/seed1`: predicts one class, test accuracy 50.0%" in section
    assert "- `reviews/small/transformers/random/lab/seed2`: diverged, test accuracy 0.0%" in section
    assert "2 runs cannot be told from the majority class" in section
    assert re.search(
        r"- `reviews/small/fairseq/random/lab/seed0`: test accuracy 5\d\.\d%, majority class", section
    )


def test_sound_runs_have_no_warnings(tmp_path):
    assert "Warnings" not in make(tmp_path)


def test_the_smallest_possible_p_is_told(text):
    assert "0.25 (paired, 3 and 3 seeds) and 0.10 (unpaired, 3 and 3 seeds)" in text


def test_frameworks_are_shown_side_by_side(text):
    assert "| setting | asked | done by fairseq | done by transformers |" in text
    assert "| order of examples | data seed | fairseq's shuffle | torch's RandomSampler |" in text


def test_parity_parameters_time_and_versions(text):
    told = (
        "reviews, small: the token ids of 200 texts are equal; on 100 of them hidden states differ by 3.8e-06"
    )
    assert told in text
    assert "| small | total |  | 22,695,936 | 22,695,936 |" in text
    assert re.search(
        r"\| reviews, small \| fairseq \| 6 \| 6\.1 s \| [56]\d\.\d s \| 8\.0 s \| 0\.4 s \|", text
    )
    assert "cpu: Made-up 3000" in text
    assert "torch 2.13.0 and 2.12.0" in text
    assert "Not all runs were made with the same versions" in text


def test_figures_and_files_are_linked(text):
    assert "![Validation accuracy while training](figures/validation_accuracy.svg)" in text
    assert "[contrasts.csv](contrasts.csv)" in text


def test_a_difference_of_parameters_shouts(tmp_path):
    path = tmp_path / "parameters.csv"
    path.write_text("model,component,formula,expected,counted\nm,head,d + 1,513,512\n")
    assert "513 | 512 (differs)" in summary.model_section([], [path])[-1]


def test_what_is_not_known_is_not_printed_as_a_number(text):
    assert "None" not in text
    assert re.search(r"\bnan\b", text) is None


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


def test_tables_escape_bars():
    assert words.markdown_table(["a"], [["x|y"]]).splitlines()[-1] == "| x&#124;y |"


def test_verdicts():
    rows = [(0.01, 0.02, "helps"), (-0.02, -0.01, "hurts"), (-0.01, 0.01, "unclear"), (0.0, 0.1, "unclear")]
    for low, high, expected in rows:
        assert answer.verdict({"ci_low": low, "ci_high": high}) == expected
    assert answer.verdict({"ci_low": None, "ci_high": None, "n_a": 1, "n_b": 3}) == "single"
    assert answer.verdict({"ci_low": None, "ci_high": None, "n_a": 3, "n_b": 3}) == "flat"


# --- the terminal ---


def test_show_prints_answer_table_and_places(tmp_path):
    made = make_experiment(tmp_path, accuracy=learning_rate_levels, noise=0.002, recipe=SWEEP, sizes=SIZES)
    write(made)
    (made.experiment / "figures").mkdir()
    (made.experiment / "figures" / "test_accuracy.png").touch()
    printed = show.show(made.experiment, 80)
    assert printed.startswith("Pretraining helps on reviews")
    assert "**" not in printed
    assert max(map(len, printed.split("\n\n")[0].splitlines())) <= 80
    assert re.search(r"^fairseq +pretrained +lab\.learning_rate=1e-05 +\d\d\.\d% ± \d\.\d%", printed, re.M)
    assert len(re.findall(r"lab\.learning_rate=\S+ \*", printed)) == 4
    assert "To beat on reviews, test: majority class 50.0%, bag of words 82.5%" in printed
    assert f"Figure:  {made.experiment}/figures/test_accuracy.png" in printed


def test_show_without_a_summary_says_what_to_do(tmp_path, capsys, monkeypatch):
    with pytest.raises(SeedbedError, match="no summary yet"):
        show.show(tmp_path)
    monkeypatch.setattr("sys.argv", ["show.py", str(tmp_path)])
    assert show.main() == 1
    assert "hint:  run it first: make demo" in capsys.readouterr().err


# --- leaks and data ---


def test_leaks_are_shown_with_and_without(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, leaked=["test-1", "test-2", "test-30"])
    text = write(made)
    section = text.split("## With and without leaked test examples")[1].split("\n## ")[0]
    assert (
        "reviews: 3 test examples of 400 leaked; what resembles them in the training split was trained on."
        in section
    )
    found = {name: tables.read_table(path) for name, path in made.outputs.items()}
    for whole, clean in zip(
        tables.on_test_set(found["summary"]),
        tables.on_test_set(found["summary"], "without leaks"),
        strict=True,
    ):
        cells = [words.percent_sd(row["mean"], row["sd"]) for row in (whole, clean)]
        line = f"| {whole['framework']} | {whole['init']} | lab | {cells[0]} | {cells[1]} | "
        assert line + f"{words.points(clean['mean'] - whole['mean'])} points |" in section
    for row in tables.on_test_set(found["contrasts"], "without leaks"):
        if row["family"] == "init":
            told = (
                f"{words.points(row['delta'])} points ({words.points_range(row['ci_low'], row['ci_high'])})"
            )
            assert f"{told} without leaks" in section
    # the answer and the tables above stay those of the whole test split
    assert (
        text.split("## With and without")[0]
        == make(tmp_path / "clean").split("## Warnings")[0].split("## The data")[0]
    )


def test_leaks_of_one_of_several_datasets_bear_its_name(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, datasets=("reviews", "music"), seeds=[0, 1])
    duplicates.write_duplicates(made.plan.per_dataset("duplicates.csv")[1], leak_rows("test-7"))
    edit_csv(
        Path(made.plan.per_dataset("bag_of_words.csv")[1]),
        lambda rows: rows.append({"split": "test", "metric": "accuracy_without_leaks", "value": "0.8"}),
    )
    section = write(made).split("## With and without leaked test examples")[1].split("\n## ")[0]
    assert "music: 1 test example of 400 leaked" in section
    assert "### music, small" in section
    assert "reviews" not in section


def test_dropped_leaks_are_said(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, leaked=["test-7"], seeds=[0, 1])
    made.plan.config["datasets"]["reviews"]["drop_leaks"] = True
    assert "in the training split was left out of training (drop_leaks)." in write(made)


def test_where_all_leaked_the_summary_says_so(tmp_path):
    every = [f"test-{number}" for number in range(SIZES["test"])]
    text = write(make_experiment(tmp_path, sizes=SIZES, leaked=every, seeds=[0, 1]))
    assert "400 test examples of 400 leaked" in text
    assert "nothing is left to measure without leaks" in text


def leak_rows(*names):
    return [
        {"split": "test", "example": name, "with_split": "train", "with_example": "train-0"}
        | {"kind": "exact", "similarity": 1.0, "same_label": True}
        for name in names
    ]


def test_no_leak_no_section(tmp_path):
    assert "leaked test examples" not in make(tmp_path)


def test_the_terminal_shows_the_whole_test_split(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, leaked=["test-1"])
    write(made)
    shown = show.show(made.experiment)
    assert shown.count("pretrained  lab") == 2
    assert "bag of words 82.5%" in shown


@pytest.mark.parametrize(("loss", "warned"), [(2.58, False), (9.7, True)])
def test_the_masked_lm_loss_is_told_beside_the_frequencies(tmp_path, loss, warned):
    made = make_experiment(tmp_path, sizes=SIZES, seeds=[0, 1])
    (parity,) = made.plan.per_pair("parity.json")
    figures = {"loss": loss, "frequency_loss": 7.09, "tokens": 900}
    edit_json(parity, lambda document: document.update(masked_lm=figures))
    text = write(made)
    assert f"masked tokens with a loss of {loss:.2f} nats, where guessing by frequency has 7.09" in text
    assert ("mean nothing to this checkpoint" in text) == warned
