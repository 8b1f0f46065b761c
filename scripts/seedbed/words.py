"""Numbers and tables as people read them: percentages with their sign, differences in points, in words."""

from collections.abc import Sequence

NOTHING = "–"  # a cell without a value


def percent(share: float | None, digits: int = 1) -> str:
    """A fraction as a percentage: 0.794 is 79.4%."""
    return NOTHING if share is None else f"{100 * share:.{digits}f}%"


def points(difference: float | None, digits: int = 1) -> str:
    """A difference of fractions in points, with its sign: -0.032 is −3.2; without a unit."""
    if difference is None:
        return NOTHING
    rounded = round(100 * difference, digits) + 0.0  # adding zero turns -0.0 into 0.0
    return f"{rounded:+.{digits}f}".replace("-", "−") if rounded else f"{rounded:.{digits}f}"


def points_range(low: float | None, high: float | None) -> str:
    """An interval of a difference in points: +1.2 to +4.6; without a unit.

    A bound beside zero has a second digit, lest it look as if the interval held zero, or did not.
    """
    if low is None or high is None:
        return NOTHING
    near = [bound != 0 and round(100 * bound, 1) == 0 for bound in (low, high)]
    return f"{points(low, 1 + near[0])} to {points(high, 1 + near[1])}"


def percent_range(low: float | None, high: float | None) -> str:
    """An interval of a share, cut at 0% and 100%: 77.9% to 80.9%."""
    if low is None or high is None:
        return NOTHING
    return f"{percent(max(0.0, low))} to {percent(min(1.0, high))}"


def percent_sd(mean: float | None, sd: float | None) -> str:
    """Mean and standard deviation, both with their sign: 79.4% ± 0.8%."""
    return percent(mean) if mean is None or sd is None else f"{percent(mean)} ± {percent(sd)}"


def p_text(p_value: float | None) -> str:
    """A p-value with two significant digits below 0.1; never as zero."""
    if p_value is None:
        return NOTHING
    return f"{p_value:.2f}" if p_value >= 0.095 else f"{p_value:.2g}"


def count(number: int, noun: str) -> str:
    """1 seed, 2 seeds, 1,000 seeds."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def join(parts: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def capital(text: str) -> str:
    """The text with a capital first letter, the rest as it is."""
    return text[:1].upper() + text[1:]
