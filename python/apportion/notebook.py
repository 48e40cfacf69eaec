"""Cell magic `%%apportion`: runs SQL, shows the rows and explains the query.

%load_ext apportion.notebook

%%apportion data_volume_per_task=16MB
SELECT city, count(*) FROM people GROUP BY city
"""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.display import display

from apportion import _html
from apportion._spark.jvm import short_errors
from apportion._util.units import count_text
from apportion.explanation import run_queries
from apportion.explanation.explained import Explained, from_run
from apportion.session import confs, get_or_create
from apportion.settings import parse_assignments
from apportion.sql.statements import split

_ROWS = 20


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add the magic to IPython. `%load_ext apportion.notebook` calls this function."""
    shell.register_magics(ApportionMagics)


@magics_class
class ApportionMagics(Magics):
    @cell_magic
    def apportion(self, line: str, cell: str) -> Explained:
        """Run the SQL of the cell, show the rows of the last statement, and explain the queries.

        Write settings for the cell as NAME=VALUE after `%%apportion`. The cell uses the running
        session, or starts one. It collects all rows and shows the first 20.
        """
        settings = parse_assignments(line.split())
        statements = [statement.text for statement in split(cell)]
        spark = get_or_create()
        with short_errors(), confs(spark, settings):
            application, columns, rows = run_queries.run_sql(spark, statements)
        if columns:
            display(_Rows(columns, rows))
        return from_run(application)


class _Rows:
    """First rows of a result."""

    def __init__(self, columns: list[str], rows: list[Any]) -> None:
        self._columns = columns
        self._head = [
            ["NULL" if value is None else str(value) for value in row] for row in rows[:_ROWS]
        ]
        shown = f", first {_ROWS} shown" if len(rows) > _ROWS else ""
        self._count = count_text(len(rows), "row") + shown

    def __repr__(self) -> str:
        return "\n".join(["\t".join(row) for row in [self._columns, *self._head]] + [self._count])

    def _repr_html_(self) -> str:
        return f"{_html.table(self._columns, self._head)}<p>{self._count}</p>\n"
