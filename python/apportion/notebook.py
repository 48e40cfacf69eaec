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

from apportion._spark.jvm import short_errors
from apportion._util import pages
from apportion._util.units import count_text
from apportion.errors import ApportionError
from apportion.logs.eventlog import Application
from apportion.logs.explanation import run_queries
from apportion.logs.explanation.explained import Explained, from_run
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

        Write settings for the cell as NAME=VALUE after `%%apportion`. `-o NAME` assigns the last
        statement as a DataFrame, which is run again when it is used. The cell uses the running
        session, or starts one. It shows the first 20 rows and the reasons.

        Raises `ApportionError` with one message for a wrong setting or wrong SQL.
        """
        words = line.split()
        name = None
        if "-o" in words:
            place = words.index("-o")
            name = words[place + 1] if place + 1 < len(words) else ""
            if not name.isidentifier():
                raise ApportionError(f"-o {name}: write the name of a variable, such as -o frame")
            del words[place : place + 2]
        settings = parse_assignments(words)
        statements = split(cell)
        if name and not statements[-1].is_query:
            raise ApportionError(f"-o {name}: the last statement is not a query")
        spark = get_or_create()
        with short_errors(), confs(spark, settings):
            texts = [statement.text for statement in statements]
            application, columns, rows = run_queries.run_sql(spark, texts, _ROWS + 1)
            if name:
                self.shell.user_ns[name] = spark.sql(texts[-1])  # type: ignore[union-attr]
        if columns:
            display(_Rows(columns, rows))
        display(_Reasons(application))
        return from_run(application)


class _Rows:
    """First rows of a result."""

    def __init__(self, columns: list[str], rows: list[Any]) -> None:
        self._columns = columns
        self._head = [
            ["NULL" if value is None else str(value) for value in row] for row in rows[:_ROWS]
        ]
        is_more = len(rows) > _ROWS
        self._count = f"first {_ROWS} rows shown" if is_more else count_text(len(rows), "row")

    def __repr__(self) -> str:
        return "\n".join(["\t".join(row) for row in [self._columns, *self._head]] + [self._count])

    def _repr_html_(self) -> str:
        return f"{pages.table(self._columns, self._head)}<p>{self._count}</p>\n"


class _Reasons:
    """Reason of each decision, by query."""

    def __init__(self, application: Application) -> None:
        self._rows = [
            [(query.description or "").splitlines()[0], logged.decision.operator,
             logged.decision.reason]
            for query in application.queries.values()
            for logged in query.decisions
        ]  # fmt: skip

    def __repr__(self) -> str:
        return "\n".join(": ".join(row[1:]) for row in self._rows) or "No decisions."

    def _repr_html_(self) -> str:
        if not self._rows:
            return "<p>No decisions: the statements read no shuffle and scanned no files.</p>"
        return pages.table(["Query", "Read by", "Why"], self._rows)
