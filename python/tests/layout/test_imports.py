"""Packages import only packages below them, in Scala and in Python."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
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
# Rules of a decision, with the maximum number of files and lines that they can reach by imports.
REACH = {
    ("DecideShuffleReads", "LocalReads"): (44, 4000),
    ("DecideShuffleReads", "LocalReads", "AdaptiveWrites", "ReportDecisions"): (60, 5220),
}
# Packages of Apportion that a decision needs. All others are optional for it.
DECIDING = {"decision", "groups", "reads", "rules", "settings"}
OPTIONAL = (
    "io.apportion.joins",
    "io.apportion.keys",
    "io.apportion.policies",
    "io.apportion.resources",
    "io.apportion.writes",
    "org.apache.spark.apportion.ui",
)

Edges = Mapping[str, set[str]]

_PACKAGE = re.compile(r"^package ([\w.]+)", re.MULTILINE)
# The names after the package begin with a capital letter.
_IMPORT = re.compile(r"\bimport ((?:io\.apportion|org\.apache\.spark[\w.]*\.apportion)[\w.]*)")
_IMPORTED = re.compile(r"\bimport ((?:io\.apportion|org\.apache\.spark)[\w.]*)\.(\{[^}]*\}|\w+)")
_DEFINITION = re.compile(r"^(?:[a-z]+(?:\[\w+\])? )*(?:class|object|trait) (\w+)", re.MULTILINE)
_CAPITALIZED = re.compile(r"\b[A-Z]\w*")
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


def scala_reach(*names: str) -> set[Path]:
    """Return the files that these files reach by imports and by names of their own package."""
    code = {file: _code(file.read_text("utf-8")) for file in SCALA.glob("scala/**/*.scala")}
    files: dict[str, set[Path]] = {}
    for file, text in code.items():
        for name in _DEFINITION.findall(text):
            files.setdefault(f"{_package(text)}.{name}", set()).add(file)
    reached: set[Path] = set()
    waiting = [file for file in code if file.stem in names]
    assert len(waiting) == len(names)
    while waiting:
        file = waiting.pop()
        if file not in reached:
            reached.add(file)
            own = {f"{_package(code[file])}.{word}" for word in _CAPITALIZED.findall(code[file])}
            imported = set(_imported(code[file]))
            of_packages = {name for name in files if f"{name.rpartition('.')[0]}._" in imported}
            for name in own | imported | of_packages:
                waiting += files.get(name, ())
    return reached


def _imported(code: str) -> Iterator[str]:
    """Yield the imported names, with the object of `import package.Object.name`."""
    for package, names in _IMPORTED.findall(code):
        yield package
        for name in names.strip("{}").split(","):
            yield f"{package}.{name.partition('=>')[0].strip()}"


def _package(text: str) -> str:
    found = _PACKAGE.search(text)
    assert found
    return found[1]


def _code(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def python_edges() -> Edges:
    modules = python_files()
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


# Names in pyspark that lead to the JVM or to the options of a builder.
_PRIVATE = {"_gateway", "_jdf", "_jsc", "_jsparkSession", "_jsq", "_jvm", "_options", "_sc"}


def python_files() -> dict[str, Path]:
    return {_module(file): file for file in (PYTHON / "apportion").rglob("*.py")}


def test_only_one_module_imports_py4j() -> None:
    importing = {
        module
        for module, file in python_files().items()
        if any(re.match(r"py4j\b|pyspark\.java_gateway\b", name) for name in _imports(file))
    }
    assert importing == {"apportion._spark.jvm"}


def test_only_the_spark_package_uses_private_names_of_pyspark() -> None:
    using = {
        module
        for module, file in python_files().items()
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in _PRIVATE
    }
    assert using == {"apportion._spark.builder", "apportion._spark.jvm"}


def folders() -> list[Path]:
    files = [*SCALA.rglob("*.scala"), *(PYTHON / "apportion").rglob("*.py")]
    return sorted({file.parent for file in files})


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_folder_has_at_most_12_files(folder: Path) -> None:
    files = [file.name for file in folder.iterdir() if file.suffix in (".py", ".scala")]
    assert len(files) <= MOST_FILES, sorted(files)


def _lines(files: list[Path]) -> int:
    return sum(len(file.read_text("utf-8").splitlines()) for file in files)


@pytest.mark.parametrize("rules", REACH, ids=lambda rules: " and ".join(rules))
def test_what_the_rules_reach_is_small(rules: tuple[str, ...]) -> None:
    reached = scala_reach(*rules)
    most_files, most_lines = REACH[rules]
    assert len(reached) <= most_files, sorted(file.stem for file in reached)
    assert most_lines * 0.8 < _lines([*reached]) <= most_lines


def test_a_decision_needs_no_optional_package() -> None:
    packages = {
        _package(file.read_text("utf-8"))
        for file in scala_reach("DecideShuffleReads", "LocalReads")
    }
    own = {package.split(".")[2] for package in packages if package.startswith("io.apportion.")}
    assert own == DECIDING


def test_the_core_is_at_most_5000_lines_of_scala() -> None:
    root = SCALA / "scala/io/apportion"
    files = [file for package in SCALA_CORE for file in (root / package).rglob("*.scala")]
    assert 3000 < _lines([root / "ApportionExtension.scala", *files]) <= 5000


def test_import_apportion_loads_at_most_2200_lines() -> None:
    code = """import sys, apportion
for module in sys.modules.values():
    print(getattr(module, "__file__", ""))"""
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=PYTHON
    ).stdout.split("\n")
    own = [file for file in map(Path, loaded) if file.is_relative_to(PYTHON / "apportion")]
    assert 1500 < _lines(own) <= 2200


@pytest.mark.parametrize(
    "package",
    sorted({each.parent.name for each in (PYTHON / "apportion").glob("[a-z]*/*.py")} - {"cli"}),
)
def test_only_the_command_line_imports_commands_and_their_support(package: str) -> None:
    imported = {
        name for file in (PYTHON / "apportion" / package).rglob("*.py") for name in _imports(file)
    }
    assert imported
    assert not [name for name in imported if name.startswith("apportion.cli")]
