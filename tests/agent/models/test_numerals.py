"""Amounts in words."""

import pytest

from agent.models.offline.numerals import in_digits


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("raise it to twelve hundred", "raise it to 1200"),
        ("to a hundred and fifty euros a day", "to 150 euros a day"),
        ("by twenty percent", "by 20 percent"),
        ("to one thousand two hundred", "to 1200"),
        ("to Twenty-Five", "to 25"),
        ("to one hundred twenty three thousand four hundred and five", "to 123405"),
        ("a thousand euros", "1000 euros"),
        ("ten euros more", "10 euros more"),
    ],
)
def test_an_amount_is_read_where_only_one_can_stand(said: str, read: str) -> None:
    assert in_digits(said) == read


@pytest.mark.parametrize(
    "said",
    [
        "that one",
        "to one of them",
        "to the top ten",
        "to twenty thirty",
        "to two fifty",
        "Campaign Twenty Four",
        "the last seven days",
        "",
    ],
)
def test_words_stay_words_elsewhere_and_where_they_make_no_number(said: str) -> None:
    assert in_digits(said) == said
