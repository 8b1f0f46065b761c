"""Why each verdict stands or does not, in full: what the folded section behind the opening says."""

from collections.abc import Mapping, Sequence

from seedbed.analysis.findings import finding
from seedbed.analysis.verdicts import UNLEARNED, direction, verdict
from seedbed.core.rows import Row
from seedbed.core.wording import Words
from seedbed.report import undecided
from seedbed.report.answer import Asked, framework_of, of_gains, of_inits, of_pairs, unlearned_runs
from seedbed.report.experiment import Experiment, questions
from seedbed.report.power import plan_sentences, rests_on

WORDS = Words("report/grounds")
MAX_LISTED = 12


def grounds(experiment: Experiment) -> list[str]:
    """What verdicts rest on, what runs behind them went wrong, and what these seeds can show: one item a
    question. Other recipes and other numbers of seeds stand in the table of plans."""
    asked = questions(experiment)
    plans = [plan_sentences(one) for one in asked if one.headline()]
    found = [*zip(of_inits(experiment), plans, strict=True)]
    found += [(one, []) for one in (*of_gains(experiment), *of_pairs(experiment))]
    items = [
        WORDS.say("question", one.place, one.own_best, " ".join([*reasons(one), *plan]))
        for one, plan in found[:MAX_LISTED]
    ]
    if len(found) > MAX_LISTED:
        items.append(WORDS.say("questions_left_out", len(found) - MAX_LISTED))
    families = {row["family"] for one, _ in found for row in one.rows.values()}
    items = list(dict.fromkeys(items))  # of gains and of methods in one place the same may be said
    return [*items, *undecided.corrected(experiment, families)]


def reasons(asked: Asked) -> list[str]:
    """What the intervals of a question rest on, and what runs behind it learned nothing or collapsed."""
    experiment, rows = asked.experiment, asked.rows
    unlearned = [row for row in rows.values() if verdict(row) in UNLEARNED]
    told = undecided.reasons(unlearned_runs(experiment, unlearned)) if unlearned else []
    if over := rests_on(list(rows.values()), names=_names(asked)):
        told.append(over)
    told += _seeds_alone(experiment, rows)
    for name, row in rows.items():
        starts, framework = asked.starts[name], framework_of(asked, name)
        told += undecided.unlearned_sides(experiment, row, _named(starts, framework))
        told += undecided.collapses(experiment, row, starts, framework)
        told += undecided.collapse_decides(experiment, row)
    return told


def _names(asked: Asked) -> Sequence[str]:
    return [] if asked.subject == "pretraining" else list(asked.rows)


def _named(starts: Mapping[str, str], framework: str) -> Mapping[str, str]:
    if not framework:
        return starts
    return {side: WORDS.say("of_framework", start, framework) for side, start in starts.items()}


def _seeds_alone(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """Where the interval over seeds alone says something else: it holds zero and the verdict stands, as where
    one of few runs stands apart; or it leaves zero out, for these test examples, and the primary does not."""
    told = []
    for name, row in rows.items():
        alone, primary = (direction(row[f"{kind}_low"], row[f"{kind}_high"]) for kind in ("t", "ci"))
        decided = finding(experiment, row) in ("higher", "lower")
        if (decided and alone == "unclear") or (primary == "unclear" and alone in ("higher", "lower")):
            bounds = row["t_low"], row["t_high"]
            told.append(WORDS.say("seeds_alone", name, experiment.level, row["metric"], bounds, decided))
    return told
