"""Numbers, recipes and names as people read them: percentages with their sign, differences in points."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from seedbed.core.tasks import FRACTION, METRICS, NATS, PERPLEXITY

NOTHING = "–"  # a cell without a value
KNOWN_DIGITS = 12  # decimals of the tables' numbers; what lies beyond is an error of binary fractions
SMALLEST_P = 1e-12  # what lies below is shown as below
LARGEST_IN_FULL = 1e7  # a value beyond it is shown by its power of ten


def percent(share: float | None, digits: int = 1) -> str:
    """A fraction as a percentage: 0.794 is 79.4%. Below 1% as many digits as show two that are not leading
    zeros: 0.0015 is 0.15%."""
    if share is None:
        return NOTHING
    exact = _decimal(share)
    if not 0 < abs(exact) < Decimal("0.01"):
        return _percent(share, digits)
    shown = str(_rounded(100 * exact, max(digits, 1 - (100 * exact).adjusted())))
    whole, decimals = shown.split(".")
    return f"{whole}.{decimals.rstrip('0').ljust(digits, '0')}%"


def level_text(confidence: float) -> str:
    """A level, as of an interval or of power, with no more digits than it has: 0.95 is 95%."""
    return f"{100 * confidence:.4g}%"


def points(difference: float | None, digits: int = 1) -> str:
    """A difference of fractions in points, with its sign: -0.032 is −3.2; without a unit."""
    return NOTHING if difference is None else _signed(100 * _decimal(difference), digits)


def _signed(number: Decimal, digits: int) -> str:
    rounded = _rounded(number, digits)
    return f"{rounded:+,f}".replace("-", "−") if rounded else f"{abs(rounded)}"


def _percent(share: float, digits: int = 1) -> str:
    return f"{_rounded(100 * _decimal(share), digits)}%"


def _decimal(number: float) -> Decimal:
    """The decimal number that is meant: 0.285, not 0.284999…"""
    return Decimal(repr(round(float(number), KNOWN_DIGITS)))


def _rounded(number: Decimal, digits: int) -> Decimal:
    """Rounded half up, as people do by hand; Python's own rounding would make 0.0625 into 0.062."""
    return number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


# --- by metric ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unit:
    """How people read values of a unit: `factor` times the number of the tables, with so many digits.

    Attributes:
        sign: right behind a value.
        value, difference: names of the unit of a value and of a difference, for headers and axes; empty
            where it has none.
    """

    factor: int
    digits: int
    sign: str
    value: str
    difference: str


UNITS = {
    FRACTION: Unit(100, 1, "%", "%", "points"),
    NATS: Unit(1, 3, "", "nats", "nats"),
    PERPLEXITY: Unit(1, 2, "", "", ""),
}


def unit_of(metric: str) -> Unit:
    """How values of a metric are read."""
    return UNITS[METRICS[metric].unit]


def metric_name(metric: str) -> str:
    """A metric in words: exact match."""
    return METRICS[metric].words


def with_unit(text: str, unit: str) -> str:
    """A header with its unit in brackets, where it has one: test loss (nats)."""
    return f"{text} ({unit})" if unit else text


def better(metric: str) -> str:
    """The direction of a metric: lower is better."""
    return "higher is better" if METRICS[metric].direction > 0 else "lower is better"


def axis_label(what: str, metric: str) -> str:
    """The label of an axis of a metric, on two lines: test loss (nats), lower is better. An accuracy needs no
    direction."""
    text = with_unit(f"{what} {metric_name(metric)}".strip(), unit_of(metric).value)
    return text if metric == "accuracy" else f"{text}\n{better(metric)}"


def value_text(metric: str, value: float | None) -> str:
    """A value as it stands in a table: 79.4% of a share, 1.234 of a loss, 3.43 of a perplexity."""
    if value is None:
        return NOTHING
    unit = unit_of(metric)
    if unit.sign:
        return percent(value)
    return _plain(unit, value)


def _plain(unit: Unit, value: float) -> str:
    """Factor, digits and sign alone: as beside a standard deviation. The perplexity of a run that went wrong
    may be any number."""
    if abs(value) >= LARGEST_IN_FULL:
        return f"{value:.2e}"
    return f"{_rounded(unit.factor * _decimal(value), unit.digits):,}{unit.sign}"


def mean_sd(metric: str, mean: float | None, sd: float | None) -> str:
    """Mean and standard deviation: 79.4% ± 0.8% of a share, 1.234 ± 0.012 of a loss."""
    if mean is None or sd is None:
        return value_text(metric, mean)
    return f"{_plain(unit_of(metric), mean)} ± {_plain(unit_of(metric), sd)}"


def bounds_of(metric: str) -> tuple[float, float]:
    """What a value cannot lie outside of."""
    return (0.0, 1.0) if METRICS[metric].unit == FRACTION else (0.0, float("inf"))


def difference_bound(metric: str, of_gains: bool = False) -> float:
    """The largest size of a difference: 1 of shares, 2 where it is one of two differences, of a loss any."""
    return bounds_of(metric)[1] * (2 if of_gains else 1)


def value_range(metric: str, low: float | None, high: float | None) -> str:
    """An interval of values, cut at what is possible: 77.9% to 80.9%, 1.210 to 1.258."""
    if low is None or high is None:
        return NOTHING
    least, most = bounds_of(metric)
    return f"{_plain(unit_of(metric), max(least, low))} to {_plain(unit_of(metric), min(most, high))}"


def change(metric: str, difference: float | None, more: int = 0) -> str:
    """A difference with its sign and `more` digits than its unit has, without the unit: +3.2, −0.120."""
    if difference is None:
        return NOTHING
    unit = unit_of(metric)
    return _signed(unit.factor * _decimal(difference), unit.digits + more)


def difference_text(metric: str, difference: float | None) -> str:
    """A difference with its unit: +3.2 points, −0.120 nats."""
    return f"{change(metric, difference)} {unit_of(metric).difference}".rstrip()


def difference_range(metric: str, low: float | None, high: float | None) -> str:
    """An interval of a difference: +1.2 to +4.6; without a unit.

    A bound beside zero has as many digits more as show one that is not zero, lest it look as if the interval
    held zero, or did not.
    """
    if low is None or high is None:
        return NOTHING
    return " to ".join(change(metric, bound, _more_digits(metric, bound)) for bound in (low, high))


def _more_digits(metric: str, bound: float) -> int:
    """How many digits more than those of its unit a bound needs not to be shown as zero."""
    unit = unit_of(metric)
    exact = abs(unit.factor * _decimal(bound))
    if not exact or _rounded(exact, unit.digits):
        return 0
    return -exact.adjusted() - unit.digits


# --- other numbers, recipes and names -----------------------------------------------------------------------


def p_text(p_value: float | None) -> str:
    """A p-value with two digits, below 0.1 without its leading zeros: 0.0625 is 0.063; never as zero."""
    if p_value is None:
        return NOTHING
    if p_value < SMALLEST_P:
        return f"< {SMALLEST_P:g}"
    exact = Decimal(repr(float(p_value)))
    rounded = _rounded(exact, max(2, 1 - exact.adjusted()))
    return f"{rounded:.2f}" if rounded >= Decimal("0.1") else f"{float(rounded):.2g}"


def short_number(value: Any) -> str:
    """A number as short as it can be: 1e-05 is 1e-5, 0.1 is 0.1; anything else as its text."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if value == 0 or 1e-2 <= abs(value) < 1e5:
        return f"{value:g}"
    digits, exponent = f"{value:e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"


def framework_name(framework: str) -> str:
    """A framework as a product is called."""
    return {"transformers": "Transformers"}.get(framework, framework)


def key_text(key: str) -> str:
    """A key of a recipe in words: learning rate."""
    return key.replace("_", " ")


def swept_text(swept: Mapping[str, Any]) -> str:
    """Swept values in words, the same everywhere: learning rate 1e-5, epochs 5."""
    return ", ".join(f"{key_text(key)} {short_number(value)}" for key, value in swept.items())


def recipe_text(recipes: Mapping[str, Mapping[str, Any]], name: str) -> str:
    """A recipe in words: its swept values, after its family where there are several; without any its name.

    Args:
        recipes: `recipes` of `Plan.reporting()`.
        name: one of them.
    """
    block = recipes[name]
    if not block["swept"]:
        return name
    several = len({other["family"] for other in recipes.values()}) > 1
    return ", ".join([*([block["family"]] if several else []), swept_text(block["swept"])])


def count(number: int, noun: str) -> str:
    """1 seed, 2 seeds, 1,000 seeds."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def join(parts: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def capital(text: str) -> str:
    """The text with a capital first letter, the rest as it is."""
    return text[:1].upper() + text[1:]


def code(text: Any) -> str:
    """Inline Markdown that shows the text as it is, whatever it holds; line ends become spaces."""
    text = " ".join(str(text).split("\n"))
    if not text:
        return ""
    taken = {len(run) for run in re.findall("`+", text)}
    ticks = "`" * next(length for length in range(1, len(text) + 2) if length not in taken)
    ends = text[0] + text[-1]
    padding = " " if "`" in ends or (ends == "  " and text.strip(" ")) else ""
    return f"{ticks}{padding}{text}{padding}{ticks}"
