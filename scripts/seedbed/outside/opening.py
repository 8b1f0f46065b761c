"""What an analysis of results from outside says first: which system is better, and what to do next."""

from collections.abc import Sequence
from dataclasses import dataclass

from seedbed.analysis.contrasts import SYSTEM
from seedbed.analysis.differences import Contrast
from seedbed.analysis.findings import finding, interest
from seedbed.analysis.verdicts import FEW_SEEDS, verdict
from seedbed.core.wording import Words
from seedbed.core.words import code
from seedbed.outside.analysis import Analysis
from seedbed.report.answer import Asked, answer
from seedbed.report.next_step import Step, next_step
from seedbed.report.opening import Group, Line, Opening, answer_text, collapsed_texts
from seedbed.report.undecided import of_side

WORDS = Words("outside/opening")
MOST_TOLD = 6  # comparisons in words; more are counted
# systems of these names are the inits of Seedbed, and their difference is the gain of pretraining
INITS = ("pretrained", "random")


@dataclass(frozen=True)
class Comparison:
    """One system against another on one dataset.

    Attributes:
        asked: the question as summaries ask it, with one difference.
        row: that difference.
        place: on which dataset, in words; empty where there is one.
    """

    asked: Asked
    row: Contrast
    place: str

    @property
    def systems(self) -> tuple[str, str]:
        """Both names as code."""
        return code(self.row.recipe_a), code(self.row.recipe_b)


def comparisons(analysis: Analysis) -> list[Comparison]:
    """Every difference as a question of its own."""
    several = len(analysis.results) > 1
    found = []
    for row in analysis.experiment.contrasts:
        of_inits = (row.recipe_a, row.recipe_b) == INITS
        sides = {"a": of_side(code(row.recipe_a)), "b": of_side(code(row.recipe_b))}
        asked = Asked(
            experiment=analysis.experiment,
            subject="pretraining" if of_inits else SYSTEM,
            place="",
            rows={"": row},
            own_best="",
            edges=[],
            starts={"": sides},
            perplexities={},
            baseline=[],
            pairs=[],
        )
        found.append(Comparison(asked, row, WORDS.say("place", row.dataset) if several else ""))
    return found


def opening(analysis: Analysis) -> Opening:
    """The answer; of several comparisons how many are decided, then each, those that are decided first."""
    asked = comparisons(analysis)
    if len(asked) == 1:
        lines = [Line("answer", sentence(asked[0])), *_collapsed(asked)]
        return Opening("", [Group("", [*lines, *_next(analysis, asked)])], [])
    told = sorted(asked, key=_is_decided, reverse=True)[:MOST_TOLD]
    groups = [Group("", [Line("compared", sentence(one)), *_collapsed([one])]) for one in told]
    left_out = [Line("compared", WORDS.say("left_out", len(asked) - MOST_TOLD))] if asked[MOST_TOLD:] else []
    return Opening(_counted(analysis, asked), groups, [*left_out, *_next(analysis, asked)])


def sentence(one: Comparison) -> str:
    """The answer to one comparison: that of an experiment's summary, or the same with the systems' names."""
    if one.asked.subject == "pretraining" and not one.place:
        return answer_text(one.asked)
    return WORDS.say("answer", answer(one.asked), *one.systems, one.place)


def _counted(analysis: Analysis, asked: Sequence[Comparison]) -> str:
    experiment = analysis.experiment
    small = sum(finding(experiment, one.row) == "small" for one in asked)
    seeds_alone = sum(one.row.dataset not in analysis.by_example for one in asked)
    counts = sum(map(_is_decided, asked)), small, len(asked)
    bounds = interest(experiment), experiment.metric, experiment.confidence
    return WORDS.say("counted", *counts, *bounds, seeds_alone)


def _is_decided(one: Comparison) -> bool:
    return verdict(one.row) in ("higher", "lower")


def _collapsed(asked: Sequence[Comparison]) -> list[Line]:
    """How often runs of each side collapsed, and the differences without these runs."""
    told = dict.fromkeys(text for one in asked for text in collapsed_texts(one.asked))
    return [Line("collapsed", text) for text in told]


# --- what to do next ----------------------------------------------------------------------------------------


def _next(analysis: Analysis, asked: Sequence[Comparison]) -> list[Line]:
    """What to do next: of one comparison its own step, of several what all have in common."""
    kind, about = _step(analysis, asked[0]) if len(asked) == 1 else _step_of_several(analysis, asked)
    return [Line("next", WORDS.say("step", kind, about))]


def _step(analysis: Analysis, one: Comparison) -> tuple[str, object]:
    if not analysis.has_interest and verdict(one.row) == "unclear":
        return "interest", None
    step: Step = next_step(one.asked)
    return step.kind, step.about


def _step_of_several(analysis: Analysis, asked: Sequence[Comparison]) -> tuple[str, object]:
    """By verdicts alone: to plan seeds for each of many comparisons takes longer than all else."""
    found = {finding(analysis.experiment, one.row) for one in asked}
    if found <= {"single", FEW_SEEDS}:
        return _step(analysis, asked[0])
    if found <= {"higher", "lower", "small"}:
        return "all_settled", analysis.experiment.confidence
    return "some", None
