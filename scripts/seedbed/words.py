"""Numbers, recipes and names as people read them: percentages with their sign, differences in points."""

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

NOTHING = "–"  # a cell without a value
KNOWN_DIGITS = 12  # decimals of the tables' numbers; what lies beyond is an error of binary fractions
SMALLEST_P = 1e-12  # what lies below is shown as below


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
    if difference is None:
        return NOTHING
    rounded = _rounded(100 * _decimal(difference), digits)
    return f"{rounded:+}".replace("-", "−") if rounded else f"{abs(rounded)}"


def _percent(share: float, digits: int = 1) -> str:
    return f"{_rounded(100 * _decimal(share), digits)}%"


def _decimal(number: float) -> Decimal:
    """The decimal number that is meant: 0.285, not 0.284999…"""
    return Decimal(repr(round(float(number), KNOWN_DIGITS)))


def _rounded(number: Decimal, digits: int) -> Decimal:
    """Rounded half up, as people do by hand; Python's own rounding would make 0.0625 into 0.062."""
    return number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def points_range(low: float | None, high: float | None) -> str:
    """An interval of a difference in points: +1.2 to +4.6; without a unit.

    A bound beside zero has a second digit, lest it look as if the interval held zero, or did not.
    """
    if low is None or high is None:
        return NOTHING
    near = [bound != 0 and _rounded(100 * _decimal(bound), 1) == 0 for bound in (low, high)]
    return f"{points(low, 1 + near[0])} to {points(high, 1 + near[1])}"


def percent_range(low: float | None, high: float | None) -> str:
    """An interval of a share, cut at 0% and 100%: 77.9% to 80.9%."""
    if low is None or high is None:
        return NOTHING
    return f"{_percent(max(0.0, low))} to {_percent(min(1.0, high))}"


def percent_sd(mean: float | None, sd: float | None) -> str:
    """Mean and standard deviation, both with their sign: 79.4% ± 0.8%."""
    return percent(mean) if mean is None or sd is None else f"{_percent(mean)} ± {_percent(sd)}"


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
