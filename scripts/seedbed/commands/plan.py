"""How many seeds and test examples find a difference, before anything is trained.

The variances are those of an earlier experiment (--from), or follow from accuracies and what else is known
(--accuracy). Differences and standard deviations are in points for accuracies, F1 and other fractions, and
else in the unit of the metric; FILE.csv has fractions in place of points.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed import commands
from seedbed.core.errors import SeedbedError

if TYPE_CHECKING:
    from seedbed.analysis.assumed_variances import Alike, Assumed
    from seedbed.analysis.seed_plan import Plans

OF_EXPERIMENT = ("question", "metric")
OF_ACCURACY = (
    "sd_seeds", "agreement", "correlation", "agreement_seeds", "correlation_seeds", "unpaired",
)  # fmt: skip


def add_parser(subparsers: Any) -> None:
    """Add `seedbed plan`."""
    parser = subparsers.add_parser(
        "plan",
        help="say how many seeds and test examples find a difference",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--difference", type=float, required=True, help="smallest true difference to find: 2")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--from", dest="folder", type=Path, help="folder of an experiment: results/demo")
    source.add_argument(
        "--accuracy", type=float, nargs="+", metavar="SHARE", help="of both sides, or of each: 0.8 0.78"
    )
    parser.add_argument("--power", type=float, default=0.8, help="probability of finding it (0.8)")
    parser.add_argument("--confidence", type=float, default=0.95, help="level of the interval (0.95)")
    parser.add_argument(
        "--seeds",
        type=int,
        nargs="+",
        default=[3, 5, 10, 25],
        help="numbers a side, for the table (3 5 10 25)",
    )
    parser.add_argument(
        "--examples", type=int, nargs="+", default=[],
        help="numbers of test examples, for the table; with --accuracy the first are those at hand",
    )  # fmt: skip
    parser.add_argument("--output", type=Path, help="write the numbers to FILE.csv, too")
    earlier = parser.add_argument_group("with --from")
    earlier.add_argument("--question", help="a part of the names of the differences to plan; else all")
    earlier.add_argument("--metric", help="if not the main one of the experiment")
    _add_assumed(parser.add_argument_group("with --accuracy"))


def _add_assumed(group: Any) -> None:
    group.add_argument(
        "--sd-seeds", type=float, nargs="+", metavar="POINTS",
        help="standard deviation of test accuracies over seeds, of both sides or of each: 1.5",
    )  # fmt: skip
    for name, number, what, example in (
        ("", None, "a run of each side", "0.85"),
        ("-seeds", "+", "two seeds of a side, of both sides or of each,", "0.9"),
    ):
        either = group.add_mutually_exclusive_group()
        either.add_argument(
            f"--agreement{name}", type=float, metavar="SHARE", nargs=number,
            help=f"of the examples on which {what} are both right or both wrong: {example}",
        )  # fmt: skip
        either.add_argument(
            f"--correlation{name}", type=float, metavar="R", nargs=number,
            help=f"of right and wrong of {what} over the examples",
        )  # fmt: skip
    group.add_argument("--unpaired", action="store_true", help="the sides do not share their seeds")


def run(options: argparse.Namespace) -> None:
    """Print the plans, and write them where that is asked for.

    Raises:
        SeedbedError: see `plan_from` and `plan_assumed`; an option that goes with the other source alone; a
            file that cannot be written.
    """
    from seedbed.analysis.seed_plan import SEED_PLAN_COLUMNS, plan_rows
    from seedbed.core.rows import write_table
    from seedbed.report.seed_plan import facts

    commands.check_table(options.output)
    plans = _plans(options)
    if options.output is not None:
        write_table(options.output, SEED_PLAN_COLUMNS, plan_rows(plans))
    *others, last = facts(plans)
    for found in others:
        commands.show(found, [""], "", lines=None)
    commands.show(last, [] if options.output is None else [f"Numbers: {options.output}"], "", lines=None)


def _plans(options: argparse.Namespace) -> "Plans":
    from seedbed.analysis.seed_plan import SEEDS, Wanted, plan_assumed, plan_from

    from_experiment = options.folder is not None
    _check_options(options, OF_ACCURACY if from_experiment else OF_EXPERIMENT, from_experiment)
    numbers = tuple(options.seeds) or SEEDS, tuple(options.examples)
    wanted = Wanted(options.difference, options.confidence, options.power, *numbers)
    if from_experiment:
        return plan_from(options.folder, wanted, options.question, options.metric)
    return plan_assumed(_assumed(options), wanted)


def _check_options(options: argparse.Namespace, strange: Sequence[str], from_experiment: bool) -> None:
    """Refuse options that only go with the other source of variances."""
    given = [name for name in strange if getattr(options, name) not in (None, False)]
    if given:
        has, needs = ("--from", "--accuracy") if from_experiment else ("--accuracy", "--from")
        option = f"--{given[0].replace('_', '-')}"
        raise SeedbedError(
            f"an option that goes with {needs} alone", where=option, hint=f"leave out {option} or {has}"
        )


def _assumed(options: argparse.Namespace) -> "Assumed":
    from seedbed.analysis.assumed_variances import Assumed

    accuracies = _of_sides("--accuracy", options.accuracy)
    for name in ("accuracy", "agreement", "agreement_seeds"):
        _check_share(f"--{name.replace('_', '-')}", getattr(options, name), whole=name != "accuracy")
    if not options.examples:
        raise SeedbedError(
            "the number of test examples is not given", where="--examples", hint="give it: --examples 2000"
        )
    sds = None
    if options.sd_seeds is not None:
        a, b = _of_sides("--sd-seeds", options.sd_seeds)
        _check_sds(a, b)
        sds = a / 100, b / 100
    return Assumed(
        accuracies,
        sds,
        options.examples[0],
        not options.unpaired,
        sides=_alike(options.agreement, options.correlation),
        seeds=_alike_seeds(options.agreement_seeds, options.correlation_seeds),
    )


def _of_sides(option: str, numbers: list[float]) -> tuple[float, float]:
    """The number of each side."""
    if len(numbers) > 2:
        raise SeedbedError(
            "more numbers than sides",
            where=option,
            found=", ".join(f"{number:g}" for number in numbers),
            hint="give one number for both sides, or two",
        )
    return numbers[0], numbers[-1]


def _check_share(option: str, found: float | list[float] | None, whole: bool) -> None:
    """Refuse what is no fraction; `whole`: 0 and 1 are some."""
    shares = found if isinstance(found, list) else [] if found is None else [found]
    for share in shares:
        if 0 < share < 1 or (whole and share in (0, 1)):
            continue
        meant = f": {share / 100:g}" if 1 < share < 100 else ""
        raise SeedbedError(
            "not a fraction", where=option, found=f"{share:g}", hint=f"give a number between 0 and 1{meant}"
        )


def _check_sds(*sds: float) -> None:
    if strange := [sd for sd in sds if not sd >= 0]:
        raise SeedbedError(
            "no standard deviation",
            where="--sd-seeds",
            found=f"{strange[0]:g}",
            hint="give points, 0 or more, such as 1.5",
        )


def _alike(agreement: float | None, correlation: float | None) -> "Alike | None":
    from seedbed.analysis.assumed_variances import Alike

    return None if agreement is None and correlation is None else Alike(agreement, correlation)


def _alike_seeds(
    agreement: list[float] | None, correlation: list[float] | None
) -> "tuple[Alike, Alike] | None":
    from seedbed.analysis.assumed_variances import Alike

    if agreement is not None:
        a, b = _of_sides("--agreement-seeds", agreement)
        return Alike(agreement=a), Alike(agreement=b)
    if correlation is not None:
        a, b = _of_sides("--correlation-seeds", correlation)
        return Alike(correlation=a), Alike(correlation=b)
    return None
