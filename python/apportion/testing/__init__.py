"""Golden tests of SQL: a statement's rows, and the decisions Apportion took for it.

A pytest plugin, loaded with the package. It collects `.sql` files below the directories that the
ini option `apportion_sql_tests` lists, and nothing where the option is not set:

    [tool.pytest.ini_options]
    apportion_sql_tests = ["sql_tests"]

A `.sql` file holds named statements, with directives in comments:

    -- set: spark.apportion.dataVolumePerTask = 64KB
    -- setup
    CREATE TEMPORARY VIEW orders AS SELECT id, id % 10 AS item FROM range(1000)

    -- name: orders by item
    SELECT item, count(*) FROM orders GROUP BY item

What each statement gave is kept beside it, in the `.golden` file of the same name, which
`pytest --update-golden` writes. `apportion.testing.script` describes the directives and
`apportion.testing.plugin` the fixture `apportion_spark`, whose session runs the statements.

The modules, in the order data takes: `script` (the text of a `.sql` file), `run` (statements on a
session), `render` (rows and decisions as text), `golden` (`.golden` files), `plugin` (pytest).
"""
