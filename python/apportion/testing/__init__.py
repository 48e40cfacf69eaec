"""Golden tests of SQL: the rows of a statement, and Apportion's decisions for it.

The package registers a pytest plugin. The plugin collects `.sql` files below the directories in the
ini option `apportion_sql_tests`. Without this option, it collects nothing:

    [tool.pytest.ini_options]
    apportion_sql_tests = ["sql_tests"]

A `.sql` file contains named statements, with directives in comments:

    -- set: spark.apportion.dataVolumePerTask = 64KB
    -- setup
    CREATE TEMPORARY VIEW orders AS SELECT id, id % 10 AS item FROM range(1000)

    -- name: orders by item
    SELECT item, count(*) FROM orders GROUP BY item

`pytest --apportion-update-golden` writes the results to the `.golden` file of the same name.
`apportion.testing.script` describes the directives. `apportion.testing.plugin` describes the
fixture `apportion_spark`, the session that runs the statements.

The modules, in the order of the data flow: `script` (parses a `.sql` file), `run` (runs
statements), `render` (rows and decisions as text), `golden` (`.golden` files), `plugin` (pytest).
"""
