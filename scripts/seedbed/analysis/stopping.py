"""What a stage decides: whether a question needs more seeds or its sweep more values, or is at its end.

Here is what each look at a question has found, and when no seeds would help; `ranges` has the sweeps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import scipy

from seedbed.analysis.experiment import Experiment
from seedbed.analysis.findings import finding, headline_rows, interest
from seedbed.analysis.looks import look_at
from seedbed.analysis.planning import Design, Variances
from seedbed.analysis.ranges import range_standings
from seedbed.analysis.spread import normal
from seedbed.analysis.verdicts import COLLAPSE
from seedbed.config.stages import OPEN, WIDENING, asked, question_of
from seedbed.core.known import known
from seedbed.core.rows import Row
from seedbed.core.words import count, join

# a question is one of these
DECIDED = "decided"  # pretraining helps or hurts, or the difference is smaller than that of interest
FUTILE = "futile"  # these test examples would not decide it with endless seeds
# stages.OPEN: more seeds may decide it
ENDED = "ended"  # it has the most seeds that the config allows
BROKEN = "broken"  # its runs must be mended first: nothing was learned, or a run has no finite loss

# of a range, besides those of `ranges`
RESTING = "resting"  # it has had its values, and seeds are added

DECISIONS = ("higher", "lower", "small")
LEAST_CHANCE = 0.1  # that endless seeds decide; below it more seeds are futile


@dataclass(frozen=True)
class Standing:
    """How a question stands at the present look.

    Attributes:
        row: its difference, of contrasts.csv.
        question: its name, see `stages.question_of`.
        state: decided, futile, open, ended or broken.
        finding: of its difference, see `findings.finding`.
        seeds: a side.
        following: seeds of the next look; None after the last.
        chance: probability that endless seeds on these test examples would decide it; None where it is not
            asked.
        examples: test examples with which endless seeds find the difference of interest, with the power of
            the config; where more seeds are futile.
    """

    row: Row
    question: str
    state: str
    finding: str
    seeds: int
    following: int | None
    chance: float | None = None
    examples: int | None = None


def standings(experiment: Experiment) -> list[Standing]:
    """How each question of a growing experiment stands; none of an experiment that does not grow."""
    found = [standing(experiment, row) for row in headline_rows(experiment, "init")]
    return [one for one in found if one is not None]


def standing(experiment: Experiment, row: Row) -> Standing | None:
    """How the question of a difference of inits stands; None in an experiment that does not grow."""
    looks = experiment.reporting.get("until", {}).get("looks", ())
    if not looks:
        return None
    found, seeds = finding(experiment, row), min(row["n_a"], row["n_b"])
    following = next((look for look in looks if look > seeds), None)
    now = Standing(
        row=row,
        question=question_of_row(experiment, row),
        state=_state(found, following),
        finding=found,
        seeds=seeds,
        following=following,
    )
    if now.state != OPEN or row["se_seeds"] is None or found == COLLAPSE:
        return now
    return _with_chance(experiment, now, looks)


def question_of_row(experiment: Experiment, row: Row) -> str:
    """The name of the question of a difference of inits, see `stages.question_of`."""
    framework, _ = row["a"].split("/")
    family = experiment.reporting["recipes"][row["recipe_a"]]["family"]
    return question_of(row["dataset"], row["model"], framework, family)


def _state(found: str, following: int | None) -> str:
    if found in DECISIONS:
        return DECIDED
    if found not in ("unclear", COLLAPSE):
        return BROKEN
    return ENDED if following is None else OPEN


def _with_chance(experiment: Experiment, now: Standing, looks: Sequence[int]) -> Standing:
    """An open question with the chance of endless seeds; futile where it is too small."""
    row, confidence = now.row, known(look_at(looks[-1], looks, experiment.confidence)).confidence
    chance = chance_of_endless_seeds(
        row["delta"],
        row["se_seeds"],
        row["se_examples"],
        degrees=now.seeds - 1,
        interest=interest(experiment),
        confidence=confidence,
    )
    if chance >= LEAST_CHANCE:
        return replace(now, chance=chance)
    examples = known(experiment.side(row, "a")[0].test_examples)
    variances = Variances(0.0, examples * row["se_examples"] ** 2, 0.0, degrees=1)
    needed = Design(variances, examples, confidence, experiment.power).examples_for(interest(experiment))
    return replace(now, state=FUTILE, chance=chance, examples=needed)


def chance_of_endless_seeds(
    delta: float, se_seeds: float, se_examples: float, *, degrees: float, interest: float, confidence: float
) -> float:
    """Probability that endless seeds on the same test examples would decide a question.

    The difference that they would show is the present one, give or take what few seeds leave open: Student's
    t times their standard error. Its interval then has the error of the test examples alone. It decides where
    it leaves zero out, or where it lies within the difference of interest.

    Args:
        delta: the difference.
        se_seeds: its standard error over seeds, their interaction with examples included.
        se_examples: what is left with endless seeds.
        degrees: of freedom of `se_seeds`.
        interest: the difference of interest, in the unit of the difference.
        confidence: of the last look.
    """
    half = normal(confidence) * se_examples
    # open is what lies between: no nearer to zero than `least`, no farther than `half`
    least = max(0.0, interest - half)
    if least >= half:
        return 1.0
    if not se_seeds:
        return float(not least <= abs(delta) <= half)

    def below(value: float) -> float:
        return float(scipy.special.stdtr(degrees, (value - delta) / se_seeds))

    remaining = below(half) - below(least) + below(-least) - below(-half)
    return min(1.0, max(0.0, 1 - remaining))


def decision(experiment: Experiment, config: Mapping[str, Any]) -> dict[str, Any]:
    """What a stage has found, and what comes next: the content of `stages.stage_file`.

    A range grows first, with the seeds of the first look; from the second look on it rests. So looks count
    that a question has with the values that it keeps.

    Args:
        experiment: its tables.
        config: `Plan.reporting()`.
    """
    questions = {one.question: _told(one) for one in standings(experiment)}
    looks = config.get("until", {}).get("looks", ())
    for name, found in range_standings(experiment).items():
        question = questions.setdefault(name, {"state": found.state, "now": {}, "next": {}})
        resting = looks and question["now"]["seeds"] > looks[0]
        question["range"] = RESTING if resting else found.state
        question["chosen"] = found.chosen
        question["now"]["values"] = found.now
        question["next"]["values"] = found.now
        if question["range"] == WIDENING:
            question["state"] = WIDENING
            question["next"] = {**question["now"], "values": found.following}
    return {
        "asked": asked(config),
        "finished": not any(question["state"] in (OPEN, WIDENING) for question in questions.values()),
        "questions": questions,
    }


def _told(one: Standing) -> dict[str, Any]:
    return {
        "state": one.state,
        "finding": one.finding,
        "now": {"seeds": one.seeds},
        "next": {"seeds": one.following if one.state == OPEN else one.seeds},
        "chance": None if one.chance is None else round(one.chance, 6),
        "examples": one.examples,
        **{key: one.row[key] for key in ("delta", "ci_low", "ci_high", "p_value", "look", "looks")},
    }


def told(name: str, question: Mapping[str, Any]) -> str:
    """How a question of a decision stands, for the log: its state, seeds, and what each side chose."""
    parts = [question["state"]]
    if "finding" in question:
        parts += [question["finding"], count(question["now"]["seeds"], "seed")]
    for init, values in question["now"].get("values", {}).items():
        tried = join([f"{value:g}" for value in values])
        parts.append(f"{init} chose {question['chosen'][init]:g} of {tried}")
    return f"{name}: {'; '.join(parts)}"
