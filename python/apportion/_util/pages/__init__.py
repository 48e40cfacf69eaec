"""HTML pages from the templates in `templates/`. Every value is escaped."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from apportion._util.units import count_text, size_text

if TYPE_CHECKING:
    from jinja2 import Environment


@functools.cache
def environment() -> Environment:
    """Return the Jinja environment of the templates."""
    # It takes longer to import than the rest of `import apportion`, which needs no page.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader(__name__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["size"] = size_text
    made.globals["count"] = count_text
    made.globals["asset"] = asset
    return made


def render(template: str, **values: Any) -> str:
    """Return the text of a template, filled in with `values`."""
    return environment().get_template(template).render(**values)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table with a header row."""
    return render("table.html", columns=columns, rows=list(rows))


def asset(name: str) -> Markup:
    """Return a style sheet or script of this package, to embed in a page."""
    return Markup(importlib.resources.files(__name__).joinpath(name).read_text("utf-8"))
