"""Numbers as a person reads them: how many digits are told, and in which unit."""

from __future__ import annotations

import math
import re


def short_number(value: float) -> str:
    """Return a number for a person: four significant digits, thousands separated, infinity as its sign.

    Parameters
    ----------
    value : float
        Any number.
    """
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}".replace("-", "−")
    size = abs(value)
    if 1e-4 <= size < 1e6:
        decimals = max(0, 3 - math.floor(math.log10(size)))
        text = f"{value:,.{decimals}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = re.sub(r"e([+-])0*(?=\d)", lambda sign: f"e{sign[1]}".replace("+", ""), f"{value:.3g}")
    return text.replace("-", "−")


def rounded(value: float) -> str:
    """Return a number for a sentence: three significant digits, from 1,000 on all digits before the point.

    Parameters
    ----------
    value : float
        Any number.
    """
    value = float(value)
    return short_number(float(f"{value:.3g}") if math.isfinite(value) and abs(value) < 1000 else round(value, 0))


def percent(share: float) -> str:
    """Return a share of 1 in percent: no decimals from 10 % on, two significant digits below."""
    of_hundred = 100 * float(share)
    return f"{of_hundred:.0f} %" if of_hundred >= 9.95 or of_hundred == 0 else f"{of_hundred:.2g} %"
