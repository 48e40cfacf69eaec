"""Packages import only packages below them, in Scala and in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / "python"
SCALA = ROOT / "jvm/src/main"
MOST_FILES = 12

# What a newcomer reads to follow a decision from the bytes to the tasks.
SCALA_CORE = ("decision", "groups", "reads", "rules", "settings", "shufflewrites")
PYTHON_CORE = ("_spark", "_util", "cli", "doctor", "testing")
PYTHON_CORE_FILES = ("__init__.py", "decision.py", "errors.py", "session.py", "settings.py")
OPTIONAL = (
    "io.apportion.keys",
    "io.apportion.policies",
    "io.apportion.resources",
    "io.apportion.writes",
)

Edges = Mapping[str, set[str]]

_PACKAGE = re.compile(r"^package ([\w.]+)", re.MULTILINE)
# The names after the package begin with a capital letter.
_IMPORT = re.compile(r"\bimport ((?:io\.apportion|org\.apache\.spark[\w.]*\.apportion)[\w.]*)")
_QUALIFIED = re.compile(r"(?<!import )(?<![\w.])(io\.apportion(?:\.[a-z]\w*)+)\.[A-Z]")


def scala_edges() -> Edges:
    files = {file: file.read_text("utf-8") for file in SCALA.rglob("*.scala")}
    # Scala 2.12 lacks methods that every package gets; that is no dependency between packages.
    files = {file: text for file, text in files.items() if "scala-2.12" not in file.parts}
    packages = {match[1] for text in files.values() if (match := _PACKAGE.search(text))}
    edges: dict[str, set[str]] = {package: set() for package in packages}
    for text in files.values():
        own = _PACKAGE.search(text)
        assert own
        code = re.sub(r'/\*.*?\*/|//[^\n]*|"[^"\n]*"', "", text, flags=re.DOTALL)
        for name in [*_IMPORT.findall(code), *_QUALIFIED.findall(code)]:
            package = name.rstrip(".")
            while package and package not in packages:
                package = package.rpartition(".")[0]
            if package and package != own[1]:
                edges[own[1]].add(package)
    return edges


def python_edges() -> Edges:
    modules = {_module(file): file for file in (PYTHON / "apportion").rglob("*.py")}
    edges: dict[str, set[str]] = {}
    for module, file in modules.items():
        own = _folder(module, modules)
        imported = (_folder(name, modules) for name in _imports(file) if name in modules)
        edges.setdefault(own, set()).update(each for each in imported if each != own)
    return edges


def _module(file: Path) -> str:
    parts = file.relative_to(PYTHON).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _folder(module: str, modules: Mapping[str, Path]) -> str:
    """The package of a module; each file at the top stands for itself."""
    if modules[module].name == "__init__.py":
        return module
    package = module.rpartition(".")[0]
    return module if package == "apportion" else package


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{name.name}" for name in node.names]
            yield from [name for name in names if _exists(name)] or [node.module]


def _exists(module: str) -> bool:
    path = PYTHON.joinpath(*module.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def circle(edges: Edges) -> list[str]:
    """Return the packages of a circle; none if there is no circle."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_scala_packages_import_without_a_circle() -> None:
    edges = scala_edges()
    assert len(edges) > 10
    assert circle(edges) == []


def test_python_packages_import_without_a_circle() -> None:
    edges = python_edges()
    assert len(edges) > 10
    assert circle(edges) == []


def test_a_circle_is_found() -> None:
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


@pytest.mark.parametrize("optional", OPTIONAL)
def test_only_the_extension_imports_an_optional_package(optional: str) -> None:
    importing = {
        package
        for package, imported in scala_edges().items()
        if any(each.startswith(optional) for each in imported) and not package.startswith(optional)
    }
    assert importing <= {"io.apportion"}


def folders() -> list[Path]:
    files = [*SCALA.rglob("*.scala"), *(PYTHON / "apportion").rglob("*.py")]
    return sorted({file.parent for file in files})


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_folder_has_at_most_12_files(folder: Path) -> None:
    files = [file.name for file in folder.iterdir() if file.suffix in (".py", ".scala")]
    assert len(files) <= MOST_FILES, sorted(files)


def _lines(files: list[Path]) -> int:
    return sum(len(file.read_text("utf-8").splitlines()) for file in files)


def test_the_core_is_at_most_5000_lines_of_scala() -> None:
    root = SCALA / "scala/io/apportion"
    files = [file for package in SCALA_CORE for file in (root / package).rglob("*.scala")]
    assert 3000 < _lines([root / "ApportionExtension.scala", *files]) <= 5000


def test_the_core_is_at_most_5500_lines_of_python() -> None:
    root = PYTHON / "apportion"
    files = [file for package in PYTHON_CORE for file in (root / package).rglob("*.py")]
    files += [root / name for name in PYTHON_CORE_FILES]
    # Commands about event logs belong to the packages that read these.
    files = [file for file in files if file.parent.name != "logs"]
    assert 3000 < _lines(files) <= 5500
