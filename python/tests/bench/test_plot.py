from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from apportion import ApportionError
from apportion._util import figures
from apportion.bench import plot
from apportion.bench.results import Results
from apportion.bench.summary import summarise


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_a_plot_is_written_as_png_and_svg(
    results: Results, tmp_path: Path, name: str, start: bytes
) -> None:
    figures.check(tmp_path / name)
    plot.draw(results, summarise(results), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_plot_is_written_without_complete_queries(results: Results, tmp_path: Path) -> None:
    failed = {"q3": results.queries["q3"]}
    plot.draw(dataclasses.replace(results, queries=failed), [], tmp_path / "a.png")
    assert (tmp_path / "a.png").is_file()


def test_a_plot_with_another_format_raises(tmp_path: Path) -> None:
    with pytest.raises(ApportionError, match=r"a\.gif: the file name must end in \.png or \.svg"):
        figures.check(tmp_path / "a.gif")


def test_a_plot_in_a_missing_folder_raises(results: Results, tmp_path: Path) -> None:
    with pytest.raises(ApportionError, match=r"cannot write .*/none/a.png: No such file"):
        plot.draw(results, [], tmp_path / "none" / "a.png")


def test_a_plot_without_matplotlib_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ApportionError, match=r"plots need .* matplotlib, .* 'apportion\[plot\]'"):
        figures.check(tmp_path / "a.png")
