"""Templates of the pages, filled: what is put in is escaped, and a missing name is an error."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import jinja2
from markupsafe import Markup

from privrisk_spark.extras import is_installed
from privrisk_spark.json_values import as_json
from privrisk_spark.reporting.glossary import words_of
from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.results.plots import Plot


def can_draw() -> bool:
    """Return True if the package of the extra ``charts`` is installed. Pages have the numbers as tables without it."""
    return is_installed("matplotlib")


def draw_plot(plot: Plot, *, prefix: str) -> Markup | None:
    """Return a plot as an ``<svg>`` element; None where charts are not drawn.

    Parameters
    ----------
    prefix : str
        Prefix of the identifiers.
    """
    if not can_draw():
        return None
    from privrisk_spark.reporting.charts import draw

    return Markup(draw(plot, prefix=prefix))


def fill(template: str, **values: object) -> str:
    """Return a page, to be written as UTF-8.

    The words of the glossary that it uses are explained at its end, with a link to them below its heading.

    Parameters
    ----------
    template : str
        Name of a file in ``reporting/templates``, or path of another below the package.
    **values : object
        Text is escaped, but for what is marked as safe. The filter ``shown`` tells any of them to a person.
    """
    return _explain_words(_environment().get_template(template).render(**values))


def fill_text(text: str, **values: object) -> str:
    """Return a page as :func:`fill` does, from the text of a template.

    Parameters
    ----------
    text : str
        It can include the files in ``templates``.
    """
    return _explain_words(_environment().from_string(text).render(**values))


def _explain_words(rendered: str) -> str:
    page = rendered + "\n"
    terms = words_of(page)
    if not terms:
        return page
    words = _environment().get_template("words.html.j2").render(terms=terms)
    head, end_of_header, rest = page.partition("</header>")
    body, end_of_main, foot = rest.rpartition("</main>")
    link = '<p class="meta"><a href="#words">What the words mean</a></p>\n'
    return f"{head}{link}{end_of_header}{body}{words}\n{end_of_main}{foot}"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = _shown
    return environment


def _source(name: str) -> str:
    # Read as a resource and not from a directory: the package may be shipped to a cluster as a zip file.
    path = name if "/" in name else f"reporting/templates/{name}"
    return files("privrisk_spark").joinpath(*path.split("/")).read_text(encoding="utf-8")


def _shown(value: object) -> str:
    """Return a value for a person."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, (int, float)):
        return short_number(value)
    value = as_json(value)
    if isinstance(value, dict):
        inside = {key: f"({_shown(item)})" if isinstance(item, dict) else _shown(item) for key, item in value.items()}
        return ", ".join(f"{key}: {item}" for key, item in inside.items())
    if isinstance(value, list):
        return ", ".join(f"[{_shown(item)}]" if isinstance(item, list) else _shown(item) for item in value)
    return _shown(value)
