"""`make release-check`: what it finds before it builds or installs anything."""

from __future__ import annotations

import pytest

import release_check


def test_the_build_the_changelog_and_the_citation_have_one_version() -> None:
    assert release_check.version() in release_check.metadata()


def test_a_file_with_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_check, "version", lambda: "9.9.9")
    with pytest.raises(release_check.CheckError, match=r"CHANGELOG\.md has the version .*9\.9\.9"):
        release_check.metadata()


def test_the_readme_has_a_program_with_its_output() -> None:
    found = release_check.PROGRAM.search((release_check.ROOT / "README.md").read_text("utf-8"))
    assert found
    assert "import apportion" in found["program"]
    assert "shuffle partitions" in found["output"]


def test_a_command_that_fails_is_named_with_its_last_lines() -> None:
    with pytest.raises(release_check.CheckError, match=r"ls --no-such-option failed:\n.*option"):
        release_check.run("ls", "--no-such-option")


def test_only_installed_pythons_are_used() -> None:
    assert not release_check.is_installed("python9.9")
