"""Numbers as people read them: rounded half up, with their signs and as many digits as they need."""

from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seedbed.core import words

SHARES = st.decimals(min_value=0, max_value=1, places=6).map(float)
DIFFERENCES = st.decimals(min_value=-1, max_value=1, places=6).map(float)


def read(shown: str) -> tuple[Decimal, int]:
    """The number that a text shows, and its decimals."""
    text = shown.rstrip("%").replace("−", "-").replace(",", "")
    return Decimal(text), len(text.partition(".")[2])


def by_hand(value: Decimal, digits: int) -> Decimal:
    """Half up, on the digits of the decimal number: add half a unit, then cut."""
    unit = Decimal(10) ** -digits
    whole = int((abs(value) / unit + Decimal("0.5")).to_integral_value("ROUND_FLOOR"))
    return (whole * unit).copy_sign(value)


@given(SHARES, st.integers(0, 3))
@example(0.285, 0)
@example(0.0625, 1)
def test_a_percentage_is_rounded_half_up(share, digits):
    exact = 100 * Decimal(str(share))
    number, decimals = read(words.percent(share, digits))
    if exact >= 1 or exact == 0:
        assert (number, decimals) == (by_hand(exact, digits), digits)


@given(st.decimals(min_value="0.000001", max_value="0.009999", places=6).map(float), st.integers(1, 3))
@example(0.00999, 1)
def test_a_small_percentage_keeps_two_digits_that_are_not_leading_zeros(share, digits):
    exact = 100 * Decimal(str(share))
    number, decimals = read(words.percent(share, digits))
    assert decimals >= digits
    two = next(places for places in range(10) if exact * 10**places >= 10)  # 0.0123 has two by 4 places
    assert number == by_hand(exact, max(digits, two))
    assert number > 0


@given(DIFFERENCES, st.integers(1, 3))
@example(-0.0001, 1)
@example(-0.00375, 2)
def test_points_are_rounded_half_up_and_signed_unless_zero(difference, digits):
    shown = words.points(difference, digits)
    number, decimals = read(shown)
    assert (abs(number), decimals) == (abs(by_hand(100 * Decimal(str(difference)), digits)), digits)
    sign = "" if number == 0 else "+" if difference > 0 else "−"
    assert shown.startswith(sign)
    assert shown[:1].isdigit() == (number == 0)


@given(DIFFERENCES, DIFFERENCES)
def test_a_bound_that_is_not_zero_is_not_shown_as_zero(low, high):
    for bound, shown in zip(
        (low, high), words.difference_range("accuracy", low, high).split(" to "), strict=True
    ):
        assert (read(shown)[0] == 0) == (bound == 0)


@given(st.floats(min_value=words.SMALLEST_P, max_value=1.0, exclude_min=True))
@example(0.0625)
@example(0.0996)
@example(0.125)
@example(0.0496)
@example(0.050001)
def test_a_p_value_has_two_digits_rounded_half_up_and_is_neither_zero_nor_the_level(p_value):
    exact, level = Decimal(repr(p_value)), Decimal("0.05")
    shown = Decimal(words.p_text(p_value))
    assert shown > 0
    places = max(2, 1 - exact.adjusted())
    rounded = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    assert shown == rounded or (rounded == level and (shown < level) == (exact < level) and shown != level)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (words.percent(0.0015), "0.15%"),
        (words.percent(0.005), "0.5%"),
        (words.mean_sd("accuracy", 0.785, 0.0075), "78.5% ± 0.8%"),
        (words.p_text(0.0), "< 1e-06"),
        (words.change("accuracy", None), "–"),
        (words.short_number(True), "True"),
        (words.short_number(1e-5), "1e-5"),
    ],
)
def test_how_numbers_look(shown, expected):
    assert shown == expected


def test_a_correlation_has_three_decimals_and_may_be_negative():
    assert words.value_text("mcc", -0.0126) == "−0.013"
    assert words.value_text("mcc", -0.0001) == "0.000"
    assert words.mean_sd("mcc", 0.5, 0.0201) == "0.500 ± 0.020"
    assert words.difference_text("mcc", 0.0206) == "+0.021"
    assert words.value_range("mcc", -1.2, 0.3) == "−1.000 to 0.300"
    assert (words.difference_bound("mcc"), words.difference_bound("mcc", of_gains=True)) == (2.0, 4.0)
    assert words.axis_label("test", "mcc") == "test Matthews correlation\nhigher is better"


def test_the_f1_of_a_class_is_a_share_that_names_it():
    assert words.metric_name("f1_of_très bon") == "F1 of très bon"
    assert words.value_text("f1_of_très bon", 0.5) == "50.0%"
    assert words.metric_key("f1_of_+/-") == "f1_of__"
