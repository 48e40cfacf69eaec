"""`python -m apportion`: the command line."""

from apportion.cli import app

app(prog_name="apportion")
