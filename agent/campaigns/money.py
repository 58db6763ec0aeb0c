"""Money as integer micros with a currency: read from what people and models write, and shown as people read it."""

import re
from decimal import Decimal, InvalidOperation

MICROS = 1_000_000
_SYMBOLS = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}
_WITHOUT_DECIMALS = frozenset({"JPY", "KRW", "CLP", "VND", "ISK", "HUF"})
_LARGEST = Decimal(10) ** 12


def decimals(currency: str) -> int:
    """How many decimals amounts of a currency carry."""
    return 0 if currency in _WITHOUT_DECIMALS else 2


def format_micros(micros: int, currency: str) -> str:
    """An amount for reading: 1234560000 EUR is "€1,234.56", and "-€0.50" is half a euro owed."""
    amount = abs(Decimal(micros)) / MICROS
    number = f"{amount:,.{decimals(currency)}f}"
    symbol = _SYMBOLS.get(currency)
    text = f"{symbol}{number}" if symbol else f"{currency} {number}"
    return f"-{text}" if micros < 0 else text


def plain_digits(number: str) -> str:
    """A number as people write it, "1,250.50" or "1.250,50", as a decimal number.

    A single separator with three digits after it groups thousands, unless there is nothing to group ("0.001"); with any other count of digits
    it is the decimal point.
    """
    separators = re.findall(r"[.,]", number)
    if not separators:
        return number
    whole, _, tail = number.rpartition(separators[-1])
    grouped = len(separators) > 1 or (len(tail) == 3 and not whole.startswith("0"))
    if len(set(separators)) == 1 and grouped:
        whole, tail = number, ""
    return re.sub(r"[.,]", "", whole) + (f".{tail}" if tail else "")


def read_amount(text: str, currency: str) -> int:
    """Micros of an amount as people write it: "€1,250.50", "1.250,50 EUR", "1 250", "600,5". Raises ValueError for what is none."""
    signs = (currency, _SYMBOLS.get(currency, currency))
    bare = re.sub("|".join(map(re.escape, signs)), "", text.strip(), flags=re.IGNORECASE)
    bare = re.sub(r"[\s\u00a0\u202f']", "", bare)
    if not re.fullmatch(r"\d+(?:[.,]\d+)*", bare):
        raise ValueError(f"{text!r} is not an amount; write a number such as 1200 or 79.50, without a minus")
    return parse_micros(plain_digits(bare), currency)


def parse_micros(amount: str | float, currency: str) -> int:
    """Micros of a decimal amount in the currency's unit, such as "120", 79.5 or "1250.00".

    Raises ValueError when it is no plain decimal number, is not above zero, or is finer than the currency's smallest coin.
    """
    try:
        value = Decimal(str(amount).strip())
    except InvalidOperation:
        raise ValueError(f"{amount!r} is not an amount; write a decimal number such as 120 or 79.50") from None
    if not value.is_finite() or value > _LARGEST:
        raise ValueError(f"{amount!r} is not an amount of money")
    if value <= 0:
        raise ValueError(f"an amount must be above zero, and {amount} is not")
    if round(value, decimals(currency)) != value:
        raise ValueError(f"{amount} {currency} is finer than {currency} allows ({decimals(currency)} decimals)")
    return int(value * MICROS)
