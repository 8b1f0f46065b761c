"""Figures: all are drawn for every shape of experiment, nothing is cut off or lies over something else."""

import copy
import dataclasses
import itertools
import logging
import re
import signal
import subprocess
import sys
import unicodedata
import warnings
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest
from builders_report import asked, data_of
from builders_rows import changed
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from synthetic import (
    LOSS_RATES,
    Synthetic,
    edit_csv,
    learning_rate_levels,
    make_experiment,
    make_generation,
)

from seedbed.analysis import verdicts
from seedbed.core import words
from seedbed.core.errors import SeedbedError
from seedbed.core.rows import CELL
from seedbed.data import audit
from seedbed.figures import (
    audit_figure,
    base,
    captions,
    contrasts,
    costs,
    curves,
    fonts,
    names,
    plot,
    predictions,
    profiles,
    registry,
)
from seedbed.figures.captions import Caption

SIZES = {"validation": 20, "test": 80}
LABELS = ("$5 & <b>", "p$_1$", "a_b%", *(f"a very long name of class number {k}" for k in range(17)))
SHAPES = {
    "plain": {},
    "one seed, one framework": {"seeds": [0], "frameworks": ["fairseq"]},
    "one init, three classes": {"inits": ["random"], "labels": ("a", "b", "c")},
    "many rows": {"datasets": ("books", "dvd", "music"), "models": ("tiny", "small"), "seeds": [0, 1]},
    "long names": {
        "labels": LABELS,
        "datasets": ("a-very-long-name-of-a-dataset-that-someone-typed-once-and-never-shortened_v2",),
        "models": ("another_long_name_of_a_model_roberta_base_fr_cased",),
    },
    "sweep": {
        "accuracy": learning_rate_levels,
        "recipe": {"sweep": {"learning_rate": [1e-5, 1e-4, 3e-4]}},
        "collapsed": ["reviews/small/fairseq/random/lab.learning_rate=1e-05/seed2"],
        "diverged": ["reviews/small/transformers/random/lab.learning_rate=0.0003/seed1"],
        "test_curves": True,
    },
    "two keys swept, one not a number": {
        "recipe": {"sweep": {"schedule": ["constant", "polynomial"], "epochs": [2, 3]}},
        "seeds": [0, 1],
    },
    "many seeds": {"seeds": list(range(60))},
    "sizes of training": {"train_sizes": [10, 20, 40, 80, "all"], "labels": LABELS},
}
FULL = "questions/tiny/transformers/pretrained/full.learning_rate=0.001"
# of a task that generates answers
GENERATION_SHAPES = {
    "answers": {},
    "answers, one seed of one method": {"methods": ("lora",), "seeds": [0]},
    "answers, a sweep": {
        "methods": ("none", "lora", "qlora", "full"),
        "rates": LOSS_RATES,
        "unstable": [f"{FULL}/seed1"],
        "diverged": [f"{FULL}/seed2"],
        "test_curves": True,
    },
    "answers, many rows": {
        "datasets": ("piaf", "a-very-long-name-of-a-dataset-that-someone-typed-once-and-never-shortened"),
        "models": ("tiny", "another_long_name_of_a_model_bloom_560m_fr"),
        "inits": ["pretrained", "random"],
        "seeds": [0, 1],
    },
}
# between them these have many rows, long names, sweeps and both kinds of outputs
QUICK = ("long names", "sweep", "sizes of training", "answers, a sweep")
UNITS = ("in per cent", "in points", "seconds")


def make(folder: Path, shape: str) -> Synthetic:
    if shape in GENERATION_SHAPES:
        made = make_generation(folder, sizes=SIZES, **GENERATION_SHAPES[shape])
    else:
        made = make_experiment(folder, sizes=SIZES, **SHAPES[shape])
    made.aggregate()
    return made


def read(made: Synthetic) -> plot.Data:
    return data_of(made)


def boxes(figure: Figure) -> list:
    """Bounding boxes of titles, tick labels, axis labels, other texts, legend and caption."""
    renderer = figure.canvas.get_renderer()
    texts = [figure._supxlabel, figure.legends[0]]
    for axis in figure.axes:
        if not axis.get_visible():
            continue
        texts += [*axis.texts, axis._left_title]
        if not axis.axison:
            continue
        texts += [axis.xaxis.label, axis.yaxis.label]
        for scale, limits in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
            low, high = sorted(limits)
            ticks = [tick for tick in scale.get_major_ticks() if low <= tick.get_loc() <= high]
            texts += [tick.label1 for tick in ticks if tick.label1.get_visible()]
    found = []
    for text in texts:
        words = getattr(text, "get_text", lambda: "legend")()
        if words.strip():
            box = text.get_window_extent(renderer)
            found += line_boxes(text, box, renderer) if "\n" in words else [(text, box)]
    return found


def line_boxes(text, box: Bbox, renderer) -> list:
    """A box a line, as a short line of a title leaves room for another; only of what stands at the left."""
    if text.get_horizontalalignment() != "left" or text.get_rotation():
        return [(text, box)]
    lines = text.get_text().split("\n")
    height = box.height / len(lines)
    made = []
    for number, line in enumerate(lines):
        width, _, _ = renderer.get_text_width_height_descent(line, text.get_fontproperties(), False)
        top = box.y1 - number * height
        made.append((f"{line} of {text}", Bbox([[box.x0, top - height], [box.x0 + width, top]])))
    return made


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(shape, marks=[] if shape in QUICK else pytest.mark.slow)
        for shape in (*SHAPES, *GENERATION_SHAPES)
    ],
)
def test_nothing_is_cut_off_or_covered(shape, tmp_path):
    experiment = make(tmp_path, shape)
    data = read(experiment)
    plot.set_style()
    for name in registry.names_for(experiment.plan):
        figure, _ = plot.FIGURES[name](data)
        figure.canvas.draw()
        extents = [(text, box) for text, box in boxes(figure) if box.width > 1 and box.height > 1]
        for text, box in extents:
            assert box.x0 >= -1, (name, text)
            assert box.y0 >= -1, (name, text)
            assert box.x1 <= figure.bbox.x1 + 1, (name, text)
            assert box.y1 <= figure.bbox.y1 + 1, (name, text)
        for (one, box), (other, second) in itertools.combinations(extents, 2):
            apart = (
                box.x1 <= second.x0 + 1
                or second.x1 <= box.x0 + 1
                or box.y1 <= second.y0 + 1
                or second.y1 <= box.y0 + 1
            )
            assert apart, (name, one, other)
        plt.close(figure)


# --- files --------------------------------------------------------------------------------------------------


def test_every_figure_is_written_as_svg_and_png_and_always_the_same(tmp_path):
    experiment = make(tmp_path / "results", "plain")
    names = registry.names_for(experiment.plan)
    folders = tmp_path / "a", tmp_path / "b"
    for folder, processes in zip(folders, (1, 2), strict=True):
        paths = [[folder / f"{name}.{ending}" for name in names] for ending in ("svg", "png")]
        with plot.drawing(read(experiment), *paths, processes) as drawn:
            told = drawn.captions()
        assert list(told) == names
        assert told["calibration"].text.startswith("Accuracy on the test split by the probability")
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    files = [f"{name}.{ending}" for name in names for ending in ("svg", "png")]
    assert sorted(first) == sorted(files)
    assert first == second
    assert all(content.startswith(b"\x89PNG") for name, content in first.items() if name.endswith("png"))


def test_a_figure_that_fails_in_a_process_of_its_own_fails_the_rule(tmp_path, capfd):
    experiment = make(tmp_path / "results", "plain")
    paths = [
        [tmp_path / f"{name}.{ending}" for name in ("learning_curves", "nothing")]
        for ending in ("svg", "png")
    ]
    with (
        pytest.raises(SeedbedError, match="some figures could not be drawn"),
        plot.drawing(read(experiment), *paths, 2) as drawn,
    ):
        drawn.captions()
    assert "KeyError: 'nothing'" in capfd.readouterr().err
    assert paths[0][0].exists()
    assert not paths[0][1].exists()


STOPPED = """
import sys, time
sys.path[:0] = sys.argv[1:3]
from pathlib import Path
import builders_report, synthetic
from seedbed.core import files, interruption
from seedbed.figures import plot

interruption.unwind()  # as each rule's script does
plot.save = lambda figure, caption, svg, png: hang(Path(svg))

def hang(svg):
    with files.atomic_open(svg) as stream:
        print("ready", flush=True)
        time.sleep(600)

made = synthetic.make_experiment(Path(sys.argv[3]), seeds=[0])
made.aggregate()
paths = [Path(sys.argv[3], "figures", f"{name}.svg") for name in ("learning_curves", "test_accuracy")]
with plot.drawing(builders_report.data_of(made), paths, paths, processes=2):
    pass
"""


def test_a_signal_while_figures_are_written_leaves_nothing_half_written(tmp_path):
    here = Path(__file__).parents[2]
    command = [sys.executable, "-c", STOPPED, str(here.parent / "scripts"), str(here), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as drawing:
        assert [drawing.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
        assert len(list((tmp_path / "figures").iterdir())) == 2
        drawing.terminate()
        assert drawing.wait(300) == 128 + signal.SIGTERM
        assert drawing.stdout.read() == "", "all processes have ended"
    assert list((tmp_path / "figures").iterdir()) == []


@pytest.fixture(scope="module", autouse=True)
def style():
    """What other tests of this process left may be another."""
    plot.set_style()


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> tuple[Path, Caption, Figure]:
    folder = tmp_path_factory.mktemp("saved")
    plot.set_style()
    figure, _ = plt.subplots(figsize=(6, 4), layout="constrained")
    caption = Caption(
        "Accuracy in per cent, p < 0.05 & “$5”; n = 3 seeds, a caption that is long enough for two lines.",
        "Marks: one seed each.",
    )
    handles = [base.line_handle(base.LOOKS["random"])]
    plot.save(base.finish(figure, handles, caption), caption, folder / "x.svg", folder / "x.png")
    return folder, caption, figure


def test_the_svg_names_and_describes_itself_in_its_metadata(saved):
    folder, caption, _ = saved
    dublin_core = "{http://purl.org/dc/elements/1.1/}"
    root = ElementTree.parse(folder / "x.svg").getroot()
    found = [next(root.iter(f"{dublin_core}{name}")).text for name in ("title", "description")]
    assert found == ["x", str(caption)]


def test_the_caption_is_drawn_in_the_png_and_cut_off_in_the_svg(saved):
    folder, _, _ = saved
    root = ElementTree.parse(folder / "x.svg").getroot()
    width, height = (float(root.get(key).removesuffix("pt")) / 72 for key in ("width", "height"))
    pixels = plt.imread(folder / "x.png")
    assert pixels.shape[:2] == (4 * base.DPI, 6 * base.DPI)
    assert width == pytest.approx(6)
    assert height < 3.8  # two lines of 9 points are a quarter of an inch
    below = pixels[round(height * base.DPI) :, :, :3]
    assert below.min() < 0.5  # the caption's ink


def test_captions_are_gathered_from_several_files(tmp_path):
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    captions.write_captions(paths[0], {"x": Caption("One “caption”."), "z": Caption("Another.", "A detail.")})
    captions.write_captions(paths[1], {"y": Caption("A third.", "More.")})
    read = captions.read_captions(paths, ["figures/y.svg", "figures/x.svg"])
    assert list(read.items()) == [("y", Caption("A third.", "More.")), ("x", Caption("One “caption”."))]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{"y": {"text": "A caption.", "details": ""}}', "no caption of x"),
        ('{"x": {"text": "", "details": ""}}', "no caption of x"),
        ("{", "invalid JSON"),
        ('["x"]', "no texts and details"),
        ('{"x": "A caption of an earlier version."}', "no texts and details"),
    ],
)
def test_a_figure_without_a_caption_is_an_error_that_names_the_file(tmp_path, content, found):
    path = tmp_path / "captions.json"
    path.write_text(content)
    with pytest.raises(SeedbedError, match="caption") as caught:
        captions.read_captions([path], ["figures/x.svg"])
    assert str(path) in str(caught.value)
    assert found in str(caught.value)


# --- what all figures have in common ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> plot.Data:
    return read(make(tmp_path_factory.mktemp("plain"), "plain"))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory) -> plot.Data:
    return read(make(tmp_path_factory.mktemp("sweep"), "sweep"))


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> plot.Data:
    return read(make(tmp_path_factory.mktemp("many"), "many rows"))


def captioned(name: str, data: plot.Data) -> dict[str, list[tuple]]:
    """What templates are asked to word for a figure."""
    return asked(lambda: plt.close(plot.FIGURES[name](data)[0]))


@pytest.fixture(scope="module")
def sized(tmp_path_factory) -> plot.Data:
    return read(make(tmp_path_factory.mktemp("sized"), "sizes of training"))


@pytest.fixture
def drawn_from(sweep, many, sized):
    """An experiment that has a figure of the given name."""
    return lambda name: {"performance_profile": many, "scores_by_size": sized}.get(name, sweep)


def test_captions_are_two_sentences_with_unit_and_seeds_and_details_say_the_kind_of_interval(
    sweep, drawn_from
):
    for name, draw in plot.FIGURES.items():
        figure, caption = draw(drawn_from(name))
        plt.close(figure)
        assert len(re.findall(r"\.(?: |$)", caption.text)) <= 2, name
        assert any(unit in caption.text.lower() for unit in UNITS), name
        assert "n = " in caption.text.replace("\N{NO-BREAK SPACE}", " "), name
        assert "interval" in caption.details, name
    for name in ("learning_curves", "test_accuracy", "test_accuracy_by_recipe", "test_curves"):
        figure, caption = plot.FIGURES[name](sweep)
        plt.close(figure)
        assert "n = 3 seeds".replace(" ", "\N{NO-BREAK SPACE}") in caption.text


def test_letters_stay_readable_on_a_phone_of_375_pixels(drawn_from):
    shown = 375 - 2 * 16 - 2 * 13 - 2  # pixels between the margins, the padding and the frame of a figure
    for name, draw in plot.FIGURES.items():
        figure, _ = draw(drawn_from(name))
        figure.canvas.draw()
        texts = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
        smallest = min(text.get_fontsize() for text in texts)
        assert smallest / 72 * shown / figure.get_figwidth() > 8, name
        plt.close(figure)


def test_inits_differ_without_colour():
    assert len(set(map(str, base.LINES.values()))) == 2
    assert len(set(base.MARKERS.values())) == 2


def test_a_dollar_in_a_name_is_no_mathematics(tmp_path):
    plot.set_style()
    splits = {
        split: [{"id": f"{split}-{k}", "text": "x", "label": k} for k in range(2)]
        for split in ("train", "validation", "test")
    }
    made = audit.Dataset("books", splits, [r"$\frac", "p$_1$"], [], [], {}, {})
    audit_figure.plot_audit([made], *(tmp_path / f"x.{ending}" for ending in ("svg", "png", "json")))
    figure, _ = audit_figure.data_audit([made])
    names = [tick.label1.get_text() for tick in figure.axes[1].yaxis.get_major_ticks()]
    assert names == [r"$\frac", "p$_1$"]
    plt.close(figure)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-5, "1e-5"),
        (0.00015, "1.5e-4"),
        (1e-3, "1e-3"),
        (0.01, "0.01"),
        (8, "8"),
        (0, "0"),
        ("constant", "constant"),
        (True, "True"),
    ],
)
def test_short_numbers(value, text):
    assert words.short_number(value) == text


def test_long_names_keep_both_ends():
    assert names.shorten("class number 14", 11) == "class…er 14"
    assert names.shorten("a\tb\n\x00c", 11) == "a b c"


# --- accuracies ---------------------------------------------------------------------------------------------


ALIKE = {
    "ends": ["très insatisfait", "plutôt insatisfait", "plutôt satisfait", "très satisfait"],
    "the middle": [f"the category with number {number} of the whole list" for number in range(30)],
    "two places": [
        f"category {a} of the long list, and then {b} of its many parts" for a in "abc" for b in "xyz"
    ],
    "beginnings": ["a" * 40 + "b" * length for length in range(5)],
    "spaces": ["a name", "a  name", "a\u200b name"],
    "Chinese": [f"非常不好的一个类别名字很长{sign}很长很长很长" for sign in "甲乙丙"],
    "marks": ["e\u0301" * 20 + "a", "e\u0301" * 20 + "b", "é" * 40],
    "equal": ["the same long name that stands twice"] * 2,
}


@pytest.mark.parametrize("length", [10, 14, 18, 40])
@pytest.mark.parametrize("kind", ALIKE)
def test_names_that_are_cut_stay_different(kind, length):
    given = ALIKE[kind]
    short = names.shorten_all(given, length)
    assert len(set(short)) == len(set(given))
    assert max(map(names.columns, short)) <= length
    assert not any(unicodedata.combining(part[:1] or " ") for name in short for part in name.split("…"))


def test_names_that_fit_are_cut_as_before():
    long = "the first of two names that are long"
    assert names.shorten_all(["a", long], 14) == ["a", names.shorten(long, 14)]
    assert names.shorten_all(["plutôt insatisfait", "plutôt satisfait"], 14) == [
        "plutôt i…sfait",
        "plutôt s…sfait",
    ]


@pytest.mark.parametrize("kind", ALIKE)
def test_names_that_are_wrapped_stay_different(kind):
    given = [f"{name}, {name}" for name in ALIKE[kind]]
    wrapped = names.wrap_names(given, 14)
    assert len(set(wrapped)) == len(set(given))
    assert max(name.count("\n") for name in wrapped) < 3


def titles_of(figure: Figure) -> list[str]:
    """The first titles of the rows of panels."""
    return [axis.get_title(loc="left") for axis in figure.axes if "\n" in axis.get_title(loc="left")]


def test_long_names_of_datasets_and_recipes_stay_different_in_every_figure(tmp_path):
    long = (
        "a-collection-of-reviews-that-someone-has-gathered-over-many-years-and-never-gave-a-short-name-part"
    )
    datasets = tuple(f"{long[:60]}-{number}-of-the-whole-collection-{long[:55]}" for number in range(2))
    made = make_experiment(tmp_path, sizes=SIZES, seeds=[0], frameworks=["fairseq"], datasets=datasets)
    made.aggregate()
    data = read(made)
    for name in ("test_accuracy", "calibration", "confusion"):
        figure, _ = plot.FIGURES[name](data)
        titles = titles_of(figure)
        assert len(set(titles)) == len(titles) == (4 if name == "confusion" else 2), name
        plt.close(figure)
    figure, _ = plot.FIGURES["contrasts"](data)
    for axis in figure.axes:
        rows = names_in(axis)
        assert len(set(rows)) == len(rows) > 0
    plt.close(figure)
    looks = base.make_looks(datasets).values()
    assert len({look.label for look in looks}) == 2
    assert max(len(look.label) for look in looks) <= base.LEGEND_LETTERS


def test_every_seed_is_a_point_and_collapsed_ones_are_crosses(sweep):
    figure, _ = plot.FIGURES["test_accuracy_by_recipe"](sweep)
    crosses = [line.get_ydata() for axis in figure.axes for line in axis.lines if line.get_marker() == "X"]
    assert sorted(float(value[0]) for value in crosses) == [0.0, 50.0]
    points = [line for axis in figure.axes for line in axis.lines if line.get_markersize() in (5.5, 7.5)]
    assert len(points) == len(sweep.runs) == 36
    stars = [line for axis in figure.axes for line in axis.lines if line.get_marker() == "*"]
    assert len(stars) == 4


def test_what_is_far_from_the_runs_of_a_sweep_is_named_and_does_not_squeeze_them(sweep):
    sound = [run for run in sweep.runs if not run["not_above_majority"] and not run["collapsed"]]
    none = dict.fromkeys(("ci_low", "ci_high", "both_low", "both_high"))
    summary = [changed(row, **none, majority_share=0.05) for row in sweep.summary]
    figure, _ = plot.FIGURES["test_accuracy_by_recipe"](
        dataclasses.replace(sweep, runs=sound, summary=summary)
    )
    axis = figure.axes[0]
    low = axis.get_ylim()[0]
    assert low > 10
    assert 100 * min(run["test_accuracy"] for run in sound if run["framework"] == "fairseq") > low
    assert [text.get_text() for text in axis.texts] == [
        "majority class 5.0% (off the scale)",
        "bag of words 82.5%",
    ]
    drawn = [line.get_ydata()[0] for line in axis.lines if list(line.get_xdata()) == [0, 1]]
    assert drawn == [pytest.approx(82.5)]
    plt.close(figure)


@pytest.mark.parametrize("name", ["test_accuracy", "test_accuracy_by_recipe"])
@pytest.mark.parametrize(
    ("bag", "column", "value", "told", "labels"),
    [
        (
            0.825,
            "bag_of_words_features",
            "characters",
            "few words between spaces",
            ["majority class 50.0%", "bag of characters 82.5%"],
        ),
        (
            None,
            "bag_of_words_left_out",
            "all texts are empty",
            "no bag of words on reviews: all texts are empty",
            ["majority class 50.0%"],
        ),
    ],
)
def test_a_bag_that_is_not_of_words_is_told(sweep, name, bag, column, value, told, labels):
    summary = [changed(row, bag_of_words=bag, **{column: value}) for row in sweep.summary]
    figure, caption = plot.FIGURES[name](dataclasses.replace(sweep, summary=summary))
    assert told in caption.details
    assert [text.get_text() for text in figure.axes[0].texts if "%" in text.get_text()] == labels
    assert "bag of words" not in [text.get_text() for text in figure.legends[0].get_texts()]
    plt.close(figure)


def test_each_size_of_training_has_its_own_bag_of_words(tmp_path):
    made = make_experiment(
        tmp_path, sizes=SIZES, frameworks=["fairseq"], seeds=[0, 1], train_sizes=[20, 80, "all"]
    )
    made.aggregate()
    data = read(made)
    figure, _ = plot.FIGURES["test_accuracy"](data)
    axis = figure.axes[0]
    assert "bag of words on as many texts" in [text.get_text() for text in axis.texts]
    upright = [line.get_xdata() for line in axis.lines if len(set(line.get_xdata())) == 1]
    drawn = {round(float(places[0]), 6) for places in upright if len(places) == 2}
    bags = {round(100 * row.bag_of_words, 6) for row in data.summary}
    assert drawn == {50.0, *bags}  # the majority class, and a bag for each size
    assert len(bags) == 3
    plt.close(figure)


def test_lines_of_sizes_are_those_of_the_table_of_learning_curves(sized):
    figure, _ = plot.FIGURES["scores_by_size"](sized)
    axis = figure.axes[0]
    rows = [
        row
        for row in sized.tables["learning_curves"]
        if (row["framework"], row["init"], row["test_set"]) == ("fairseq", "pretrained", "all")
    ]
    drawn = [np.column_stack(line.get_data()).tolist() for line in axis.lines]
    for baseline in ("bag_of_words", "linear_probe"):
        assert [[row["train_size"], 100 * row[baseline]] for row in rows] in drawn
    assert {"bag of words", "linear probe"} <= {text.get_text() for text in figure.legends[0].get_texts()}
    plt.close(figure)


def test_intervals_of_a_sweep_lie_over_means_and_beside_seeds(sweep):
    figure, _ = plot.FIGURES["test_accuracy_by_recipe"](sweep)
    for axis in figure.axes:
        bars = [line for line in axis.lines if line.get_marker() == "_"]
        means = [line for line in axis.lines if line.get_markersize() in (6, 13) and line.get_zorder() == 4]
        seeds = [line for line in axis.lines if line.get_markersize() in (5.5, 7.5)]
        assert len(means) == 6
        assert len(bars) >= 5  # equal seeds have no interval
        assert {float(bar.get_xdata()[0]) for bar in bars} <= {float(mean.get_xdata()[0]) for mean in means}
        assert min(bar.get_zorder() for bar in bars) > max(mark.get_zorder() for mark in means + seeds)
        width = axis.get_window_extent().width / np.ptp(axis.get_xlim())
        for mean, seed in itertools.product(means, seeds):
            assert abs(mean.get_xdata()[0] - seed.get_xdata()[0]) * width > 5.5
    plt.close(figure)


def test_points_of_several_hyperparameters_have_a_panel_for_each_and_no_lines(sweep):
    recipes = copy.deepcopy(sweep.reporting["recipes"])
    swept = [{"learning_rate": 1e-5 * 7**at, "batch_size": size} for at, size in enumerate((8, 16, 8))]
    for block, values in zip(recipes.values(), swept, strict=True):
        block["swept"] = values
    points = dataclasses.replace(sweep, reporting={**sweep.reporting, "recipes": recipes})
    figure, _ = plot.FIGURES["test_accuracy_by_recipe"](points)
    assert [axis.get_xlabel() for axis in figure.axes] == ["learning rate"] * 2 + ["batch size"] * 2
    for axis in figure.axes:
        means = [line for line in axis.lines if line.get_markersize() in (6, 13) and line.get_zorder() == 4]
        assert len(means) == 3 * 2
        # no line joins means: what has several points is a baseline or an interval
        joined = [line for line in axis.lines if len(set(line.get_xdata())) > 1]
        assert all(len(set(line.get_ydata())) == 1 for line in joined)
    assert [tick.get_text() for tick in figure.axes[2].get_xticklabels()] == ["8", "16"]
    plt.close(figure)


def test_no_line_crosses_the_title_of_a_group(sweep):
    figure, _ = plot.FIGURES["test_accuracy"](sweep)
    for axis in figure.axes:
        titles = [
            text.get_position()[1]
            for text in axis.texts
            if re.search("equal recipe|own best", text.get_text())
        ]
        spans = [line.get_ydata() for line in axis.lines if line.get_linestyle() in (":", "-.")]
        dotted = [line.get_ydata() for line in axis.lines if line.get_color() == base.GREY]
        assert len(titles) == 4  # two groups of each framework
        assert len(dotted) == 8
        for title, (start, end) in itertools.product(titles, [*spans, *dotted]):
            assert not start <= title <= end
    plt.close(figure)


# --- learning curves ----------------------------------------------------------------------------------------


def test_smoothing_is_that_of_tensorboard():
    # s = 0.5, 0.25, 0.125 over 1 - w^i = 0.5, 0.75, 0.875
    assert curves.smooth([1, 0, 0], 0.5) == pytest.approx([1, 1 / 3, 1 / 7])
    assert curves.smooth([0.3] * 4, 0.9) == pytest.approx([0.3] * 4)
    assert curves.smooth([3, 1, 2], 0.0) == [3, 1, 2]
    holed = curves.smooth([1, np.nan, 0], 0.5)
    assert np.isnan(holed[1])
    assert holed[::2] == pytest.approx([1, 1 / 3])


def test_only_curves_of_many_points_are_smoothed_and_the_caption_has_the_weight(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, recipe={"epochs": 12}, frameworks=["fairseq"])
    made.aggregate()

    def keep_few_of_validation(rows):
        rows[:] = [row for row in rows if row["split"] == "train" or int(row["epoch"]) < 6]

    edit_csv(made.outputs["curves"], keep_few_of_validation)
    data = read(made)
    figure, _ = plot.FIGURES["learning_curves"](data)
    ((found,),) = captioned("learning_curves", data)["curves.caption"]
    assert found.weights == {"train": 0.6, "validation": 0}
    means = [
        next(line for line in axis.lines if line.get_linewidth() == 2.2).get_ydata() for axis in figure.axes
    ]
    for values, (split, metric) in zip(means, data.task.curves, strict=True):
        by_step = {}
        for row in data.tables["curves"]:
            if (row["split"], row["metric"], row["init"]) == (split, metric, "pretrained"):
                by_step.setdefault(row["step"], []).append(
                    row["value"] * (100 if metric == "accuracy" else 1)
                )
        raw = [np.mean(by_step[step]) for step in sorted(by_step)]
        expected = curves.smooth(raw, 0.6) if split == "train" else raw
        assert list(values) == pytest.approx(expected)
    plt.close(figure)


def test_few_points_are_not_smoothed(plain):
    unsmoothed = {**plain.reporting, "figures": {"smoothing": 0.0}}
    for data in (plain, dataclasses.replace(plain, reporting=unsmoothed)):
        ((found,),) = captioned("learning_curves", data)["curves.caption"]
        assert set(found.weights.values()) == {0}
        assert found.asked is (data is plain)


def test_the_band_stops_where_a_seed_has_no_value():
    rows = [
        {"init_seed": seed, "data_seed": seed, "step": step, "value": None if (seed, step) == (1, 2) else 0.5}
        for seed in (0, 1)
        for step in (1, 2, 3)
    ]
    figure, axis = plt.subplots()
    curves._draw_curves(axis, rows, base.LOOKS["random"], 0.95, 0.0, "accuracy")
    assert list(axis.lines[-1].get_xdata()) == [1, 3]
    assert len(axis.lines) == 3
    plt.close(figure)


def test_a_loss_that_explodes_does_not_flatten_the_others(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, frameworks=["fairseq"])
    made.aggregate()

    def explode(rows):
        for row in rows:
            if (row["metric"], row["init"], row["init_seed"]) == ("loss", "random", "0"):
                row["value"] = "900"

    edit_csv(made.outputs["curves"], explode)
    figure, _ = plot.FIGURES["learning_curves"](read(made))
    assert figure.axes[2].get_ylim()[1] < 3
    plt.close(figure)
    ((found,),) = captioned("learning_curves", read(made))["curves.caption"]
    assert found.cut is not None


def test_a_loss_that_falls_far_is_shown_from_its_start(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, frameworks=["fairseq"])
    made.aggregate()

    def fall(rows):
        for row in rows:
            if row["metric"] == "loss":
                row["value"] = str(2.0 if row["epoch"] == "1" else 0.1)

    edit_csv(made.outputs["curves"], fall)
    figure, _ = plot.FIGURES["learning_curves"](read(made))
    assert figure.axes[2].get_ylim()[1] > 2
    plt.close(figure)
    ((found,),) = captioned("learning_curves", read(made))["curves.caption"]
    assert found.cut is None


def test_curves_of_a_sweep_are_those_of_the_equal_recipe_and_of_each_sides_own_best(sweep):
    figure, _ = plot.FIGURES["learning_curves"](sweep)
    titled = [axis for axis in figure.axes if axis.get_title(loc="left")]
    assert len(figure.axes) == 2 * 2 * len(sweep.task.curves)
    titles = [axis.get_title(loc="left").replace("\n", " ") for axis in titled]
    assert "equal recipe" in titles[0]
    assert titles[1].startswith("Transformers equal recipe: learning rate 1e-5")
    assert "own best" in titles[3]
    # the thick lines of a panel of validation accuracy are each init's own best recipe
    lines = [line for line in figure.axes[11].lines if line.get_linewidth() == 2.2]
    for line, init in zip(lines, sweep.inits, strict=True):
        (best,) = (
            row
            for row in sweep.summary
            if (row["framework"], row["init"], row["selection"]) == ("transformers", init, "best")
        )
        rows = [
            row
            for row in sweep.tables["curves"]
            if all(row[key] == best[key] for key in CELL)
            and (row["split"], row["metric"], row["epoch"]) == ("validation", "accuracy", 5)
        ]
        assert line.get_ydata()[-1] == pytest.approx(100 * np.mean([row["value"] for row in rows]))
    plt.close(figure)


# --- contrasts ----------------------------------------------------------------------------------------------


def contrast(family="init", selection="equal", init="pretrained", delta=0.1, half=0.02, margin=None) -> dict:
    low, high = (None, None) if half is None else (delta - half, delta + half)
    sides = {"a": f"fairseq/{init}", "b": f"fairseq/{'random' if family == 'init' else init}"}
    names = {"pretrained": "pretrained - random"} if family == "init" else {}
    return {
        **{"family": family, "selection": selection, "delta": delta, "ci_low": low, "ci_high": high},
        "metric": "accuracy",
        "direction": verdicts.direction(low, high),
        **{"contrast": names.get(init, "fairseq - transformers"), "dataset": "reviews", "model": "small"},
        **{"recipe_a": "lab", "recipe_b": "lab", "n_a": 3, "n_b": 3, "margin": margin},
        **{"t_low": low, "t_high": high, **sides, "equivalence_low": None, "equivalence_high": None},
    }


def names_in(axis) -> list[str]:
    """The names of differences."""
    return [text.get_text() for text in axis.texts if text.get_horizontalalignment() == "left"]


def numbers_in(axis) -> list[str]:
    return [text.get_text() for text in axis.texts if text.get_horizontalalignment() == "right"]


def forest(plain, *rows) -> tuple[Figure, str]:
    return plot.FIGURES["contrasts"](forest_data(plain, *rows))


def forest_data(plain, *rows):
    return plot.Data(plain.runs, plain.summary, list(rows), plain.reporting)


def of_forest(plain, *rows):
    """What the caption of a forest plot is made from."""
    ((found,),) = captioned("contrasts", forest_data(plain, *rows))["contrasts.caption"]
    return found


def test_the_forest_plot_shows_differences_and_intervals_in_points(plain):
    figure, _ = forest(plain, contrast(delta=0.1, half=0.02))
    (axis,) = figure.axes
    lines = [(list(line.get_xdata()), line.get_linewidth()) for line in axis.lines]
    assert ([pytest.approx(8), pytest.approx(12)], 5) in lines
    assert any(x == [pytest.approx(10)] for x, _ in lines)
    assert numbers_in(axis) == ["+10.0  (+8.0 to +12.0)"]
    assert axis.get_title(loc="left") == "Gain of pretraining: checkpoint − random weights"
    plt.close(figure)


def test_margins_are_shaded_for_each_row_of_the_frameworks(plain):
    rows = [
        contrast(),
        contrast("framework", delta=0.0, margin=0.01),
        contrast("framework", init="random", delta=0.0, margin=0.02),
    ]
    figure, _ = forest(plain, *rows)
    shaded = [
        [(patch.get_x(), patch.get_width()) for patch in axis.patches if isinstance(patch, Rectangle)]
        for axis in figure.axes
    ]
    assert shaded == [[], [(-1, 2), (-2, 4)]]
    assert of_forest(plain, *rows).margins
    plt.close(figure)


def test_the_inner_bar_of_frameworks_is_the_interval_of_the_equivalence_test(plain):
    tested = {"equivalence_low": -0.002, "equivalence_high": 0.0104, "equivalence": "inconclusive"}
    row = contrast("framework", delta=0.004, half=0.02, margin=0.01) | tested
    figure, _ = forest(plain, row, contrast())
    (axis, other) = figure.axes
    lines = {line.get_linewidth(): list(line.get_xdata()) for line in axis.lines}
    assert lines[contrasts.THICK] == pytest.approx([-0.2, 1.04])
    assert lines[contrasts.BAR] == pytest.approx([-1.6, 2.4])
    assert numbers_in(axis)[0] == "+0.4  (−1.6 to +2.4)\n90%: −0.2 to +1.0, inconclusive"
    assert contrasts.THICK not in [line.get_linewidth() for line in other.lines]
    assert of_forest(plain, row, contrast()).tested
    plt.close(figure)


def test_without_a_test_of_equivalence_the_caption_speaks_of_none(plain):
    assert not of_forest(plain, contrast()).tested


def test_own_best_names_the_recipes_of_both_sides(sweep):
    name = "lab.learning_rate={}".format
    recipes = ((name("0.0001"), name("0.0003")), (name("0.0001"),) * 2)
    rows = [contrast("framework", "best", margin=0.01) | {"recipe_a": a, "recipe_b": b} for a, b in recipes]
    gain = {"recipe_a": f"{name('1e-05')}/{name('0.0001')}", "recipe_b": name("0.0003")}
    rows.append(contrast("dataset", "best") | {**gain, "contrast": "gain on x - gain on y"})
    figure, _ = forest(sweep, *rows)
    assert [name for axis in figure.axes for name in names_in(axis)] == [
        "from the checkpoint, own best: learning rate 1e-4 / 3e-4",
        "from the checkpoint, own best: learning rate 1e-4 (both)",
        "fairseq, own best",
    ]
    assert figure.axes[0].get_title(loc="left") == "Frameworks: fairseq − fairseq"
    plt.close(figure)


def test_without_a_sweep_the_legend_speaks_of_no_recipes(plain, sweep):
    for data, word in ((plain, "difference"), (sweep, "equal recipe")):
        figure, _ = plot.FIGURES["contrasts"](data)
        texts = [text.get_text() for text in figure.legends[0].get_texts()]
        assert texts[0] == f"{word}, 95% interval"
        plt.close(figure)


def test_an_interval_beyond_the_scale_ends_in_arrows(plain):
    figure, _ = forest(plain, *[contrast(delta=0.1 + k / 1000) for k in range(4)], contrast(half=0.9))
    (axis,) = figure.axes
    arrows = [line.get_marker() for line in axis.lines if line.get_marker() in ("<", ">")]
    assert sorted(arrows) == ["<", "<", ">", ">"]  # of both intervals
    low, high = axis.get_xlim()
    assert low == pytest.approx(-4)  # twice the median half interval beyond zero
    assert high == pytest.approx(14.3)
    plt.close(figure)


def test_an_impossible_bound_is_cut(plain):
    figure, _ = forest(plain, contrast(delta=0.1, half=44))
    assert numbers_in(figure.axes[0]) == ["+10.0  (−100.0 to +100.0)"]
    plt.close(figure)


def test_best_comes_first_and_looks_different(plain):
    rows = [contrast(), contrast(selection="best", delta=0.05)]
    figure, _ = forest(plain, *rows)
    marks = [line for line in figure.axes[0].lines if line.get_marker() in ("o", "D")]
    assert [(line.get_marker(), float(line.get_xdata()[0])) for line in marks] == [
        ("D", pytest.approx(5)),
        ("o", pytest.approx(10)),
    ]
    assert of_forest(plain, *rows).own_best
    plt.close(figure)


def test_a_contrast_without_an_interval_is_a_point_and_the_caption_says_so(plain):
    rows = [contrast(half=None), contrast()]
    figure, _ = forest(plain, *rows)
    found = of_forest(plain, *rows)
    assert (found.without_interval, found.differences) == (1, 2)
    assert numbers_in(figure.axes[0])[0] == "+10.0"
    plt.close(figure)


def test_a_difference_without_a_verdict_is_hollow_and_the_caption_says_why(plain):
    rows = [contrast() | {"no_verdict": "too few seeds"}, contrast()]
    figure, _ = forest(plain, *rows)
    fills = [line.get_markerfacecolor() for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [fill == "white" for fill in fills] == [True, False]
    assert of_forest(plain, *rows).withheld == {"too few seeds": 1}
    assert "no verdict" in [text.get_text() for legend in figure.legends for text in legend.texts]
    plt.close(figure)


def test_many_contrasts_are_capped_and_the_caption_says_so(plain):
    rows = [contrast() for _ in range(contrasts.MAX_CONTRASTS + 3)]
    figure, _ = forest(plain, *rows)
    assert len(numbers_in(figure.axes[0])) == contrasts.MAX_CONTRASTS
    assert of_forest(plain, *rows).hidden == 3
    plt.close(figure)


# --- profiles -----------------------------------------------------------------------------------------------


def test_a_profile_weighs_datasets_the_same():
    shares = profiles.profile([[0.5, 0.7], [0.9]], np.array([0.4, 0.5, 0.6, 0.8, 0.9]))
    assert shares == pytest.approx([1, 0.75, 0.75, 0.5, 0])


def test_the_band_of_a_profile_resamples_runs():
    # of two runs, none, one or both are above: 25, 50 and 25 per cent of the replicates
    for confidence, expected in ((0.4, (0.5, 0.5)), (0.9, (0, 1))):
        bounds = profiles.profile_band([[0.0, 1.0]], np.array([0.5]), confidence, 4000, 0)
        assert [bound[0] for bound in bounds] == pytest.approx(expected)
    same = profiles.profile_band([[0.7, 0.7], [0.7, 0.7]], np.array([0.6, 0.8]), 0.95, 100, 0)
    assert [list(bound) for bound in same] == [[1, 0], [1, 0]]


def test_one_seed_has_a_profile_without_a_band(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, datasets=("a", "b"), seeds=[0])
    made.aggregate()
    figure, _ = plot.FIGURES["performance_profile"](read(made))
    assert not any(axis.collections for axis in figure.axes)
    plt.close(figure)
    calls = captioned("performance_profile", read(made))["profiles.performance_profile"]
    assert [level for _, _, _, level, _ in calls] == [None]


def test_expected_validation_is_a_line_an_init_with_a_band_of_one_deviation(sweep):
    figure, _ = plot.FIGURES["expected_validation"](sweep)
    rows = [
        row
        for row in sweep.tables["expected_validation"]
        if (row["framework"], row["init"]) == ("fairseq", "pretrained")
    ]
    line = figure.axes[0].lines[0]
    assert list(line.get_xdata()) == [1, 2, 3]
    assert list(line.get_ydata()) == pytest.approx([100 * row["expected"] for row in rows])
    band = figure.axes[0].collections[0].get_datalim(figure.axes[0].transData)
    assert band.y0 == pytest.approx(100 * min(row["expected"] - row["sd"] for row in rows))
    plt.close(figure)


# --- predictions --------------------------------------------------------------------------------------------


def test_reliability_shows_the_bins_of_the_table(plain):
    figure, _ = plot.FIGURES["calibration"](plain)
    curves, counts = figure.axes[0], figure.axes[2]
    rows = [
        row
        for row in plain.tables["calibration"]
        if (row["framework"], row["init"]) == ("fairseq", "pretrained")
    ]
    assert curves.lines[1].get_xdata() == pytest.approx([100 * row["confidence"] for row in rows])
    assert curves.lines[1].get_ydata() == pytest.approx([100 * row["accuracy"] for row in rows])
    total = sum(row["count"] for row in rows)
    heights = [bar.get_height() for bar in counts.patches[: len(rows)]]
    assert heights == pytest.approx([100 * row["count"] / total for row in rows])
    ece = next(r["ece"] for r in plain.summary if (r["framework"], r["init"]) == ("fairseq", "pretrained"))
    assert f"ECE {100 * ece:.1f}" in [text.get_text() for text in curves.texts]
    plt.close(figure)


def test_bins_of_few_predictions_are_hollow_and_bars_share_an_axis(plain):
    cells = {tuple(row[key] for key in CELL): row for row in plain.summary}
    rows = [
        {**dict(zip(CELL, cell, strict=True)), "bin_low": low, "bin_high": low + 0.1,
         "count": count, "confidence": low + 0.05, "accuracy": 0.7}
        for cell in cells
        for low, count in ((0.6, 59), (0.8, 60 if cell[2] == "fairseq" else 500))
    ]  # fmt: skip
    data = dataclasses.replace(plain, tables={**plain.tables, "calibration": rows})
    figure, _ = plot.FIGURES["calibration"](data)
    marks = figure.axes[0].collections[0]
    assert marks.get_facecolor()[0].tolist() == [1, 1, 1, 1]  # 59 predictions of 3 seeds
    assert marks.get_facecolor()[1].tolist() != [1, 1, 1, 1]
    assert [few for _, few, *_ in captioned("calibration", data)["predictions.calibration"]] == [20]
    assert figure.axes[2].get_ylim() == figure.axes[3].get_ylim()
    plt.close(figure)
    many = [{**row, "count": 1000} for row in rows]
    data = dataclasses.replace(plain, tables={**plain.tables, "calibration": many})
    assert [few for _, few, *_ in captioned("calibration", data)["predictions.calibration"]] == [0]


def test_the_text_of_a_cell_can_be_read_on_its_shade():
    # both have the same contrast, 4.6, to a luminance of 0.179, which lies between grey 117 and grey 118
    assert predictions.readable_on((1, 1, 1)) == "black"
    assert predictions.readable_on((0, 0, 0)) == "white"
    assert predictions.readable_on((118 / 255,) * 3) == "black"
    assert predictions.readable_on((117 / 255,) * 3) == "white"


def confusion_of(plain, counts: dict[tuple[str, str], int]) -> tuple[Figure, str]:
    cells = [row for row in plain.summary if (row["framework"], row["init"]) == ("fairseq", "pretrained")]
    rows = [
        {**{key: cells[0][key] for key in CELL}, "label": label, "prediction": name, "count": n}
        for (label, name), n in counts.items()
    ]
    runs = [run for run in plain.runs if (run["framework"], run["init"]) == ("fairseq", "pretrained")]
    return plot.FIGURES["confusion"](plot.Data(runs, cells, [], plain.reporting, tables={"confusion": rows}))


def of_confusion(plain, counts: dict[tuple[str, str], int]) -> dict[str, object]:
    """What the caption of a confusion matrix is made from."""
    calls = asked(lambda: plt.close(confusion_of(plain, counts)[0]))
    (values,) = calls["predictions.confusion"]
    keys = ("seeds", "shown", "no_prediction", "renamed", "no_examples", "missing", "note")
    return dict(zip(keys, values, strict=True))


def test_confusion_is_shares_of_each_label_with_counts(plain):
    counts = {("a", "a"): 30, ("a", "b"): 10, ("b", "b"): 4, ("b", "none"): 1}
    figure, _ = confusion_of(plain, counts)
    (axis,) = figure.axes
    assert axis.images[0].get_array().ravel().tolist() == pytest.approx([75, 25, 0, 0, 80, 20])
    assert axis.texts[0].get_text() == "75.0%\n30"
    assert [tick.label1.get_text() for tick in axis.xaxis.get_major_ticks()] == ["a", "b", "none"]
    assert of_confusion(plain, counts)["no_prediction"] == "none"
    plt.close(figure)


def test_of_many_classes_the_largest_are_shown_as_shares_of_all_their_examples(plain):
    counts = {(f"class {k}", f"class {k}"): 100 - k for k in range(25)} | {("class 0", "class 24"): 100}
    figure, _ = confusion_of(plain, counts)
    table = figure.axes[0].images[0].get_array()
    assert table.shape == (predictions.MAX_CLASSES,) * 2
    assert table[0, 0] == pytest.approx(50)
    assert of_confusion(plain, counts)["shown"] == predictions.MAX_CLASSES
    plt.close(figure)


def square(names: list[str]) -> dict[tuple[str, str], int]:
    """Counts that leave no cell of the matrix empty."""
    return {
        (label, name): 900 if label == name else 1 + row for row, label in enumerate(names) for name in names
    }


@pytest.mark.parametrize("classes", [2, 4, 6, 7, 12])
def test_the_texts_of_a_cell_stay_in_it(plain, classes):
    names = [f"catégorie numéro {number} de la liste complète" for number in range(classes)]
    figure, _ = confusion_of(plain, square(names))
    (axis,) = figure.axes
    labels = [
        [tick.label1.get_text() for tick in each.get_major_ticks()] for each in (axis.xaxis, axis.yaxis)
    ]
    assert [len(set(each)) for each in labels] == [classes, classes]
    assert len(axis.texts) == classes**2
    box = axis.get_window_extent()
    for text in axis.texts:
        column, row = text.get_position()
        found = text.get_window_extent()
        assert box.x0 + box.width * column / classes <= found.x0 + 1
        assert found.x1 <= box.x0 + box.width * (column + 1) / classes + 1
        assert box.y1 - box.height * (row + 1) / classes <= found.y0 + 1
        assert found.y1 <= box.y1 - box.height * row / classes + 1
    plt.close(figure)


def test_a_class_without_test_examples_has_dashes(plain):
    counts = {("a", "a"): 30, ("a", "b"): 0, ("b", "a"): 0, ("b", "b"): 0}
    figure, _ = confusion_of(plain, counts)
    (axis,) = figure.axes
    assert [text.get_text() for text in axis.texts] == ["100.0%\n30", "0.0%\n0", "–", "–"]
    plt.close(figure)
    assert of_confusion(plain, counts)["no_examples"]
    assert not of_confusion(plain, {**counts, ("b", "b"): 1})["no_examples"]


CHINESE = ["很好", "不好", "positif 🙁"]


def make_font(path: Path, characters: str) -> Path:
    """A font of one family that draws squares for these characters alone."""
    glyphs = [".notdef", *(f"u{ord(sign):04X}" for sign in characters)]
    pen = TTGlyphPen(None)
    pen.moveTo((100, 0))
    for corner in ((100, 700), (900, 700), (900, 0)):
        pen.lineTo(corner)
    pen.closePath()
    made = FontBuilder(1000, isTTF=True)
    made.setupGlyphOrder(glyphs)
    made.setupCharacterMap({ord(sign): name for sign, name in zip(characters, glyphs[1:], strict=True)})
    made.setupGlyf(dict.fromkeys(glyphs, pen.glyph()))
    made.setupHorizontalMetrics(dict.fromkeys(glyphs, (1000, 100)))
    made.setupHorizontalHeader(ascent=800, descent=-200)
    made.setupNameTable({"familyName": "Squares", "styleName": "Regular"})
    made.setupOS2(sTypoAscender=800, usWeightClass=400)
    made.setupPost()
    made.save(path)
    return path


@pytest.fixture
def only_font(tmp_path, monkeypatch):
    """Leaves matplotlib's own font and one that has these characters alone."""

    def leave(characters: str) -> None:
        manager = font_manager.fontManager
        known = [entry for entry in manager.ttflist if entry.name in (fonts.FAMILY, "Last Resort")]
        monkeypatch.setattr(manager, "ttflist", known)
        path = make_font(tmp_path / "squares.ttf", characters)
        monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(path)])
        fonts._installed.cache_clear()
        fonts._characters.cache_clear()

    yield leave
    fonts._installed.cache_clear()
    fonts._characters.cache_clear()
    plot.set_style()


def test_names_are_drawn_with_a_font_of_the_machine_that_has_them(plain, only_font, caplog):
    only_font("很好不🙁")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as matplotlib warns of a glyph that is missing
        plot.set_style(CHINESE)
        figure, caption = confusion_of(plain, square(CHINESE))
        figure.canvas.draw()
    assert [tick.label1.get_text() for tick in figure.axes[0].xaxis.get_major_ticks()] == CHINESE
    assert plt.rcParams["font.family"] == ["DejaVu Sans", "Squares"]
    assert "font" not in str(caption)
    assert caplog.records == []
    plt.close(figure)


def test_without_a_font_classes_are_numbered_and_caption_and_log_say_so(plain, only_font, caplog):
    only_font("很")
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        plot.set_style(CHINESE)
        figure, _ = confusion_of(plain, square(CHINESE))
        figure.canvas.draw()
    labels = [tick.label1.get_text() for tick in figure.axes[0].yaxis.get_major_ticks()]
    assert labels == ["class 1", "class 2", "positif"]
    assert of_confusion(plain, square(CHINESE))["renamed"]
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "figures: no font of this machine has 不 (U+4E0D), 好 (U+597D) and 🙁 (U+1F641); install one"
    )
    plt.close(figure)


def test_names_that_would_be_equal_without_their_signs_are_numbered(only_font):
    only_font("x")
    plot.set_style(["ok 🙁", "ok 👍", "a"])
    assert fonts.drawable_names(["ok 🙁", "ok 👍", "a"]) == (["class 1", "class 2", "a"], True)
    assert fonts.drawable_names(["è", "ok\u200d"]) == (["è", "ok\u200d"], False)


def test_runs_without_probabilities_are_left_out_and_the_caption_says_so(tmp_path):
    name = "reviews/small/transformers/random/lab/seed0"
    made = make_experiment(tmp_path, sizes=SIZES, seeds=[0], diverged=[name])
    made.aggregate()
    data = read(made)
    figure, _ = plot.FIGURES["calibration"](data)
    assert len(figure.axes[1].collections) == 1
    plt.close(figure)
    ((_, _, missing, _),) = captioned("calibration", data)["predictions.calibration"]
    assert missing == 1
    ((_, _, no_prediction, *_),) = captioned("confusion", data)["predictions.confusion"]
    assert no_prediction


# --- costs --------------------------------------------------------------------------------------------------


def test_bars_are_median_seconds_and_every_run_is_a_mark(plain):
    figure, _ = plot.FIGURES["time_and_memory"](plain)
    seconds, memory = figure.axes
    runs = [run for run in plain.runs if (run["framework"], run["init"]) == ("fairseq", "pretrained")]
    parts = [np.median([run[f"{part}_seconds"] for run in runs]) for part in costs.PARTS]
    bars = seconds.patches[: len(parts)]
    assert [bar.get_width() for bar in bars] == pytest.approx(parts)
    assert list(seconds.lines[0].get_xdata()) == [np.median([run["total_seconds"] for run in runs])]
    marks = sum(len(line.get_xdata()) for line in seconds.lines if line.get_marker() != "|")
    assert marks == len(plain.runs)
    assert list(memory.lines[1].get_xdata()) == [run["peak_memory_mib"] for run in runs]
    plt.close(figure)


def test_the_caption_says_whose_time_and_memory_those_of_fused_seeds_are(plain):
    for seeds, fused in ((1, False), (3, True), (None, False)):
        runs = [changed(run, fused_seeds=seeds) for run in plain.runs]
        data = plot.Data(runs, plain.summary, [], plain.reporting)
        values = captioned("time_and_memory", data)["costs.caption"][-1]
        assert values[5] is fused


def test_unknown_memory_is_left_out_and_the_caption_says_so(plain):
    runs = [changed(run, peak_memory_mib=None) for run in plain.runs]
    data = plot.Data(runs, plain.summary, [], plain.reporting)
    figure, _ = plot.FIGURES["time_and_memory"](data)
    values = captioned("time_and_memory", data)["costs.caption"][-1]
    assert len(values[6]) == 1
    assert not any(len(line.get_xdata()) for line in figure.axes[1].lines)
    plt.close(figure)
