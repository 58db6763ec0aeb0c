"""Amounts survive reading and showing, and nonsense is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.campaigns import format_micros, parse_micros
from agent.campaigns.money import read_amount


@pytest.mark.parametrize(
    "micros, currency, text",
    [
        (1_234_560_000, "EUR", "€1,234.56"),
        (-500_000, "EUR", "-€0.50"),
        (0, "USD", "$0.00"),
        (12_000_000, "CHF", "CHF 12.00"),
        (1_500_000_000, "JPY", "¥1,500"),
    ],
)
def test_amounts_are_shown_as_people_read_them(micros: int, currency: str, text: str) -> None:
    assert format_micros(micros, currency) == text


@pytest.mark.parametrize(
    "amount, micros", [("120", 120_000_000), (79.5, 79_500_000), ("0.01", 10_000), (" 5 ", 5_000_000)]
)
def test_decimal_amounts_are_read(amount: str | float, micros: int) -> None:
    assert parse_micros(amount, "EUR") == micros


@pytest.mark.parametrize("amount", ["", "abc", "0", "-5", "1.234", "NaN", "inf", float("nan"), 1e300, "1e30"])
def test_what_is_no_amount_is_refused(amount: str | float) -> None:
    with pytest.raises(ValueError, match=r"amount|above zero|finer"):
        parse_micros(amount, "EUR")


def test_a_currency_without_cents_refuses_them() -> None:
    with pytest.raises(ValueError, match="finer than JPY"):
        parse_micros("10.5", "JPY")


@given(st.integers(min_value=1, max_value=10**9))
def test_cents_survive_a_round_trip(cents: int) -> None:
    micros = cents * 10_000
    text = format_micros(micros, "EUR").removeprefix("€").replace(",", "")
    assert parse_micros(text, "EUR") == micros


@pytest.mark.parametrize(
    ("text", "euros"),
    [
        ("600", "600"), ("600.5", "600.5"), ("600,50", "600.5"), ("1.200", "1200"), ("1,200", "1200"), ("1,200.50", "1200.5"),
        ("1.200,50", "1200.5"), ("1 200,50", "1200.5"), ("€600", "600"), ("600 EUR", "600"), ("1.200.000", "1200000"), ("1'200", "1200"),
    ],
)  # fmt: skip
def test_amounts_are_read_as_people_write_them(text: str, euros: str) -> None:
    assert read_amount(text, "EUR") == int(float(euros) * 1_000_000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a lot",
        "-3",
        "1e5",
        "600 USD",
        "12..3",
        "0",
        "NaN",
        "0.001",
        "0,001",
        "00.001",
        "10.005,123",
        "5%",
    ],
)
def test_what_people_write_that_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"amount|finer|above zero"):
        read_amount(text, "EUR")
