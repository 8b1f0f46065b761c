"""Figures: all are drawn for every shape of experiment, nothing is cut off or lies over something else."""

import itertools
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from synthetic import Synthetic, learning_rate_levels, make_experiment

from seedbed import figures, tables

SIZES = {"validation": 20, "test": 80}
SHAPES = {
    "plain": {},
    "one seed, one framework": {"seeds": [0], "frameworks": ["fairseq"]},
    "one init, three classes": {"inits": ["random"], "labels": ("a", "b", "c")},
    "many rows": {"datasets": ("books", "music"), "models": ("tiny", "small"), "seeds": [0, 1]},
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
}


def make(folder: Path, shape: str) -> Synthetic:
    made = make_experiment(folder, sizes=SIZES, **SHAPES[shape])
    made.aggregate()
    return made


def read(made: Synthetic) -> figures.Data:
    rows = (tables.read_table(made.outputs[name]) for name in ("runs", "curves", "summary"))
    return figures.Data(*rows, made.plan.reporting())


def boxes(figure: Figure) -> list:
    """Bounding boxes of titles, tick labels, axis labels, legend and caption."""
    renderer = figure.canvas.get_renderer()
    texts = [figure._supxlabel, figure.legends[0]]
    for axis in figure.axes:
        texts += [axis._left_title, axis.xaxis.label, axis.yaxis.label, *axis.texts]
        low, high = sorted(axis.get_ylim())
        ticks = [tick for tick in axis.yaxis.get_major_ticks() if low <= tick.get_loc() <= high]
        texts += [tick.label1 for tick in ticks if tick.label1.get_visible()]
    return [
        (text, text.get_window_extent(renderer))
        for text in texts
        if getattr(text, "get_text", lambda: "legend")()
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_is_cut_off_or_covered(shape, tmp_path):
    experiment = make(tmp_path, shape)
    data = read(experiment)
    figures.set_style()
    for name in experiment.plan.figures():
        figure, _ = figures.FIGURES[name](data)
        figure.canvas.draw()
        extents = [(text, box) for text, box in boxes(figure) if box.width and box.height]
        for text, box in extents:
            assert box.x0 >= -1, text
            assert box.y0 >= -1, text
            assert box.x1 <= figure.bbox.x1 + 1, text
            assert box.y1 <= figure.bbox.y1 + 1, text
        for (one, box), (other, second) in itertools.combinations(extents, 2):
            apart = (
                box.x1 <= second.x0 + 1
                or second.x1 <= box.x0 + 1
                or box.y1 <= second.y0 + 1
                or second.y1 <= box.y0 + 1
            )
            assert apart, (name, one, other)
        figures.plt.close(figure)


def test_every_figure_is_written_as_svg_and_png_and_always_the_same(tmp_path):
    experiment = make(tmp_path / "results", "plain")
    names = experiment.plan.figures()
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        paths = [[folder / f"{name}.{ending}" for name in names] for ending in ("svg", "png")]
        figures.plot_figures(experiment.outputs, experiment.plan.reporting(), *paths)
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    assert sorted(first) == sorted(f"{name}.{ending}" for name in names for ending in ("svg", "png"))
    assert first == second
    assert all(content.startswith(b"\x89PNG") for name, content in first.items() if name.endswith("png"))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory) -> figures.Data:
    return read(make(tmp_path_factory.mktemp("sweep"), "sweep"))


def test_every_seed_is_a_point_and_collapsed_ones_are_crosses(sweep):
    figure, _ = figures.test_accuracy_by_recipe(sweep)
    crosses = [line.get_ydata() for axis in figure.axes for line in axis.lines if line.get_marker() == "X"]
    assert sorted(float(value[0]) for value in crosses) == [0.0, 50.0]
    points = [line for axis in figure.axes for line in axis.lines if line.get_markersize() in (5.5, 7.5)]
    assert len(points) == len(sweep.runs) == 36
    stars = [line for axis in figure.axes for line in axis.lines if line.get_marker() == "*"]
    assert len(stars) == 4


def test_the_band_stops_where_a_seed_has_no_value(sweep):
    rows = [
        {"init_seed": seed, "data_seed": seed, "step": step, "value": None if (seed, step) == (1, 2) else 0.5}
        for seed in (0, 1)
        for step in (1, 2, 3)
    ]
    _, axis = figures.plt.subplots()
    figures._draw_curves(axis, rows, "random", 0.95)
    assert list(axis.lines[-1].get_xdata()) == [1, 3]
    assert len(axis.lines) == 3


def test_captions_tell_unit_number_of_seeds_and_kind_of_interval(sweep):
    for name, draw in figures.FIGURES.items():
        _, caption = draw(sweep)
        assert "in per cent" in caption, name
        assert "n = 3 seeds".replace(" ", "\N{NO-BREAK SPACE}") in caption
        assert "95% Student t interval over seeds" in caption


def test_inits_differ_without_colour():
    assert len(set(map(str, figures.LINES.values()))) == 2
    assert len(set(figures.MARKERS.values())) == 2


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
    assert figures.short_number(value) == text
