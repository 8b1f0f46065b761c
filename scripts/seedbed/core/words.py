"""Numbers, recipes and names for people: percentages with their sign, differences in points."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from seedbed.core.recipes import ALL, declared, train_size
from seedbed.core.tasks import CORRELATION, FRACTION, METRICS, NATS, NUMBER, PERPLEXITY, SQUARES

NOTHING = "–"  # a cell without a value
KNOWN_DIGITS = 12  # decimals of the tables' numbers; further ones are errors of binary fractions
SMALLEST_P = 1e-6  # smaller values are shown as "< 1e-06"
LARGEST_IN_FULL = 1e7  # larger values are shown with a power of ten


def percent(share: float | None, digits: int = 1) -> str:
    """A fraction as a percentage: 0.794 is 79.4%. Below 1% with two significant digits: 0.0015 is 0.15%."""
    if share is None:
        return NOTHING
    exact = _decimal(share)
    if not 0 < abs(exact) < Decimal("0.01"):
        return _percent(share, digits)
    shown = str(_rounded(100 * exact, max(digits, 1 - (100 * exact).adjusted())))
    whole, decimals = shown.split(".")
    return f"{whole}.{decimals.rstrip('0').ljust(digits, '0')}%"


def level_text(confidence: float) -> str:
    """A level of confidence or power as a percentage without trailing zeros: 0.95 is 95%."""
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
    """The intended decimal number: 0.285, not 0.284999…"""
    return Decimal(repr(round(float(number), KNOWN_DIGITS)))


def _rounded(number: Decimal, digits: int) -> Decimal:
    """Rounded half up, as people do; Python's own rounding would make 0.0625 into 0.062."""
    return number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


# --- by metric ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unit:
    """The format of values of a unit.

    Attributes:
        factor: multiplies the number of the tables.
        digits: decimals.
        sign: follows a value without a space.
        value, difference: names of the unit of a value and of a difference, for headers and axes, or empty.
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
    CORRELATION: Unit(1, 3, "", "", ""),
    SQUARES: Unit(1, 4, "", "", ""),
    NUMBER: Unit(1, 3, "", "", ""),
}


# the smallest and the largest possible value
BOUNDS = {
    FRACTION: (0.0, 1.0),
    NATS: (0.0, math.inf),
    PERPLEXITY: (0.0, math.inf),
    CORRELATION: (-1.0, 1.0),
    SQUARES: (0.0, math.inf),
    NUMBER: (-math.inf, math.inf),
}


def unit_of(metric: str) -> Unit:
    """The unit of a metric's values."""
    return UNITS[METRICS[metric].unit]


def metric_name(metric: str) -> str:
    """A metric in words: exact match."""
    return METRICS[metric].words


def metric_key(metric: str) -> str:
    """A metric as a part of names of tables and files: the label of a class may be anything."""
    return re.sub(r"\W+", "_", metric)


def with_unit(text: str, unit: str) -> str:
    """A header with its unit, if any, in brackets: test loss (nats)."""
    return f"{text} ({unit})" if unit else text


def better(metric: str) -> str:
    """The direction of a metric in words: lower is better."""
    return "higher is better" if METRICS[metric].direction > 0 else "lower is better"


def axis_label(what: str, metric: str) -> str:
    """The label of a metric's axis, on two lines: test loss (nats), lower is better.

    Accuracy needs no direction.
    """
    text = with_unit(f"{what} {metric_name(metric)}".strip(), unit_of(metric).value)
    return text if metric == "accuracy" else f"{text}\n{better(metric)}"


def value_text(metric: str, value: float | None) -> str:
    """A value for a table: 79.4% for a share, 1.234 for a loss, 3.43 for a perplexity."""
    if value is None:
        return NOTHING
    unit = unit_of(metric)
    if unit.sign:
        return percent(value)
    return _plain(unit, value)


def _plain(unit: Unit, value: float) -> str:
    """A value with its unit's digits and sign; the perplexity of a failed run may be any number."""
    if abs(value) >= LARGEST_IN_FULL:
        return f"{value:.2e}"
    rounded = _rounded(unit.factor * _decimal(value), unit.digits)
    return f"{rounded or abs(rounded):,}{unit.sign}".replace("-", "−")


def mean_sd(metric: str, mean: float | None, sd: float | None) -> str:
    """Mean and standard deviation: 79.4% ± 0.8% for a share, 1.234 ± 0.012 for a loss."""
    if mean is None or sd is None:
        return value_text(metric, mean)
    return f"{_plain(unit_of(metric), mean)} ± {_plain(unit_of(metric), sd)}"


def bounds_of(metric: str) -> tuple[float, float]:
    """The smallest and the largest possible value."""
    return BOUNDS[METRICS[metric].unit]


def difference_bound(metric: str, of_gains: bool = False) -> float:
    """The largest possible difference: 1 for shares, 2 for a difference of gains, infinite for a loss."""
    least, most = bounds_of(metric)
    return (most - least) * (2 if of_gains else 1)


def value_range(metric: str, low: float | None, high: float | None) -> str:
    """An interval of values, cut at the possible bounds: 77.9% to 80.9%, 1.210 to 1.258."""
    if low is None or high is None:
        return NOTHING
    least, most = bounds_of(metric)
    return f"{_plain(unit_of(metric), max(least, low))} to {_plain(unit_of(metric), min(most, high))}"


def change(metric: str, difference: float | None, more: int = 0) -> str:
    """A difference with its sign and `more` digits than usual, without the unit: +3.2, −0.120."""
    if difference is None:
        return NOTHING
    unit = unit_of(metric)
    return _signed(unit.factor * _decimal(difference), unit.digits + more)


def difference_text(metric: str, difference: float | None) -> str:
    """A difference with its unit: +3.2 points, −0.120 nats."""
    return f"{change(metric, difference)} {unit_of(metric).difference}".rstrip()


def difference_range(metric: str, low: float | None, high: float | None) -> str:
    """An interval of a difference, without the unit: +1.2 to +4.6.

    A bound near zero gets more digits, until one is not zero, so that it shows whether zero is inside.
    """
    if low is None or high is None:
        return NOTHING
    return " to ".join(change(metric, bound, _more_digits(metric, bound)) for bound in (low, high))


def _more_digits(metric: str, bound: float) -> int:
    """The number of further digits that a bound needs so that it is not shown as zero."""
    unit = unit_of(metric)
    exact = abs(unit.factor * _decimal(bound))
    if not exact or _rounded(exact, unit.digits):
        return 0
    return -exact.adjusted() - unit.digits


# --- other numbers, recipes and names -----------------------------------------------------------------------


def p_text(p_value: float | None) -> str:
    """A p-value with two decimals, or two significant digits below 0.1: 0.0625 is 0.063.

    Never zero, and never rounded to the usual level of 0.05: whether it is below that is what counts.
    """
    if p_value is None:
        return NOTHING
    if p_value <= SMALLEST_P:
        return f"< {SMALLEST_P:g}"
    exact = Decimal(repr(float(p_value)))
    digits = max(2, 1 - exact.adjusted())
    while (rounded := _rounded(exact, digits)) == Decimal("0.05") != exact:
        digits += 1
    return f"{rounded:.2f}" if rounded >= Decimal("0.1") else f"{float(rounded):g}"


def short_number(value: Any) -> str:
    """A number in its shortest form: 1e-05 is 1e-5, 0.1 is 0.1; anything else as its text."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if value == 0 or 1e-2 <= abs(value) < 1e5:
        return f"{value:g}"
    digits, exponent = f"{value:e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"


def framework_name(framework: str) -> str:
    """A framework's name in texts."""
    return {"transformers": "Transformers"}.get(framework, framework)


def key_text(key: str) -> str:
    """A key of a recipe in words: learning rate."""
    return key.replace("_", " ")


def swept_text(swept: Mapping[str, Any]) -> str:
    """Swept values in words: learning rate 1e-5, epochs 5."""
    return ", ".join(f"{key_text(key)} {short_number(value)}" for key, value in swept.items())


def recipe_text(recipes: Mapping[str, Mapping[str, Any]], name: str) -> str:
    """A recipe in words: its swept values, after its family if there are several; else its name.

    Args:
        recipes: `recipes` of `Plan.reporting()`.
        name: the recipe's name.
    """
    block = recipes[name]
    size = size_text(recipes, name)
    if not block["swept"] and not size:
        return name
    several = len({declared(other) for other in recipes.values()}) > 1
    parts = (declared(block) if several else "", swept_text(block["swept"]), size)
    return ", ".join(filter(None, parts))


def size_text(recipes: Mapping[str, Mapping[str, Any]], name: str) -> str:
    """On how many training texts a recipe trains, in words; empty unless any recipe has a size."""
    if not any(map(train_size, recipes.values())):
        return ""
    return count(train_size(recipes[name]) or ALL, "training text")


def count(number: int | str, noun: str) -> str:
    """1 seed, 2 seeds, 1,000 seeds, all seeds."""
    told = number if isinstance(number, str) else f"{number:,}"
    return f"{told} {noun}{'' if number == 1 else 's'}"


def join(parts: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def capital(text: str) -> str:
    """The text with a capital first letter."""
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
