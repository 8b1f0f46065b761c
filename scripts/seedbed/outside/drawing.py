"""The figures of an analysis of results from outside: those of an experiment, drawn from its tables."""

import warnings
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

from seedbed.analysis.experiment import Experiment
from seedbed.core.wording import Words
from seedbed.figures.accuracy import test_accuracy
from seedbed.figures.base import Data, save, set_style
from seedbed.figures.captions import Caption
from seedbed.figures.contrasts import contrasts

WORDS = Words("outside/document")


def draw(experiment: Experiment, folder: Path) -> Mapping[str, Caption]:
    """Draw scores and differences as NAME.svg and NAME.png; returns the captions by name.

    Args:
        experiment: of an analysis.
        folder: that there is.
    """
    data = Data(**{each.name: getattr(experiment, each.name) for each in fields(Experiment)})
    set_style({*data.reporting["recipes"], *data.reporting["datasets"]})
    # `set_style` has logged the characters that no font has
    warnings.filterwarnings("ignore", message="Glyph .* missing from font")
    captions = {}
    for name, function in {"scores": test_accuracy, "contrasts": contrasts}.items():
        figure, caption = function(data)
        if name == "scores":  # these runs have no checkpoint that validation selects
            majority = any(row.majority_share is not None for row in data.summary)
            details = WORDS.say("figure_details", data.level_of_intervals, majority)
            caption = replace(caption, details=details)
        save(figure, caption, folder / f"{name}.svg", folder / f"{name}.png")
        captions[name] = caption
    return captions
