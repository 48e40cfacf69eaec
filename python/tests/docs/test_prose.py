"""The text of pages, messages and comments is plain English: short sentences, no banned phrases."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from .pages import PAGES, ROOT

MOST_WORDS = 25
MOST_WORDS_OF_PAGE = 900
MOST_LINES_OF_README = 120
MOST_PAGES = 32
MOST_WORDS_OF_ALL = 32_000

# Pages that a program writes from the code.
REFERENCES = {
    "command-line.md",
    "decisions.md",
    "settings.md",
}

BANNED = re.compile(
    r"\b(?:be it|but for|as (?:\w+ ){1,3}(?:has|have) it|tells? of|told of|(?:is|are) dealt|"
    r"comes? to be|came to be|somebody|nobody|who asks|that which|the one that|those of which|"
    r"would like / can use|least / wanted|is there to ask|at once ran|no difference to speak of|"
    r"1 (?:tasks|stages|partitions))\b",
    re.IGNORECASE,
)
# Words of the glossary that stand for others. Code and settings may have them.
SYNONYMS = re.compile(r"\b(?:subpartitions?|reducer counts?)\b", re.IGNORECASE)

_CODE = re.compile(r"^( *)```.*?^\1```$|^(?: {4}|\t).*$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_INLINE = re.compile(r"`[^`]*`")
_ENDS = re.compile(r"(?<=[.!?])[\"')]*\s+|:\s*$", re.MULTILINE)


def text_of(page: Path) -> str:
    """A page without its blocks of code, comments and addresses."""
    text = _COMMENT.sub("", page.read_text("utf-8"))
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return _LINK.sub(r"\1", text)


def paragraphs(text: str) -> Iterator[str]:
    """Paragraphs, items of lists, and cells of tables."""
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=[#|])", text):
        line = " ".join(part.split())
        if line.startswith("|"):
            yield from (cell.strip() for cell in re.split(r"(?<!\\)\|", line))
        else:
            yield re.sub(r"^(?:#+|[-*]|\d+\.) ", "", line)


def sentences(text: str) -> Iterator[str]:
    for paragraph in paragraphs(text):
        # What is code is one word, whatever is in it.
        plain = _INLINE.sub("code", paragraph)
        yield from (each.strip() for each in re.split(r"(?<=[.!?:;])\s+", plain) if each.strip())


def words(text: str) -> int:
    return len(re.findall(r"[\w'%.,/+-]*\w[\w'%.,/+-]*", text))


def too_long(text: str) -> list[str]:
    return [each for each in sentences(text) if words(each) > MOST_WORDS]


def found_in(pages: Iterable[Path], faults: Callable[[str], list[str]]) -> dict[str, list[str]]:
    """Return the faults in the text of each page that has any, by the name of the page."""
    found = {page.name: faults(text_of(page)) for page in pages}
    return {name: each for name, each in found.items() if each}


def test_sentences_of_pages_are_short() -> None:
    assert found_in(PAGES, too_long) == {}


def test_pages_have_no_banned_phrase() -> None:
    assert found_in(PAGES, BANNED.findall) == {}


def test_pages_have_at_most_900_words() -> None:
    written = [page for page in PAGES if page.name not in REFERENCES]
    counts = {page.name: words(_INLINE.sub("code", text_of(page))) for page in written}
    assert {name: n for name, n in counts.items() if n > MOST_WORDS_OF_PAGE} == {}


def test_all_pages_together_are_short() -> None:
    assert len([page for page in PAGES if page.parent != ROOT]) <= MOST_PAGES
    assert sum(words(page.read_text("utf-8")) for page in PAGES) <= MOST_WORDS_OF_ALL


def test_pages_use_the_words_of_the_glossary() -> None:
    written = [page for page in PAGES if page.name not in REFERENCES]
    assert found_in(written, lambda text: SYNONYMS.findall(_INLINE.sub("", text))) == {}


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= MOST_LINES_OF_README


# Messages, help and comments


def test_the_texts_of_settings_are_plain() -> None:
    settings = json.loads((ROOT / "python/apportion/settings.json").read_text("utf-8"))
    texts = [setting["doc"] for setting in settings]
    assert [text for text in texts if BANNED.search(text)] == []
    assert [long for text in texts for long in too_long(text)] == []


def python_texts(file: Path) -> Iterator[str]:
    """Strings, docstrings included, and comments."""
    source = file.read_text("utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def scala_texts(file: Path) -> Iterator[str]:
    source = file.read_text("utf-8")
    yield from re.findall(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"', source, re.DOTALL)


def sources(*folders: str) -> list[Path]:
    files = [file for folder in folders for file in sorted((ROOT / folder).rglob("*"))]
    return [file for file in files if file.suffix in (".py", ".scala")]


def test_no_banned_phrase_in_python() -> None:
    found = {
        file.name: BANNED.findall(" ".join(text.split()))
        for file in sources("python/apportion", "python/measurements")
        for text in python_texts(file)
        if BANNED.search(" ".join(text.split()))
    }
    assert found == {}


def test_no_banned_phrase_in_scala() -> None:
    found = {
        file.name: BANNED.findall(" ".join(text.replace(" * ", " ").split()))
        for file in sources("jvm/src/main")
        for text in scala_texts(file)
        if BANNED.search(" ".join(text.replace(" * ", " ").split()))
    }
    assert found == {}


# The checks themselves


def test_a_long_sentence_is_found() -> None:
    long = " ".join(["word"] * 26)
    assert too_long(f"Short.\n\n- {long}.") == [f"{long}."]
    assert too_long(f"| a | {long} |") == [long]
    assert too_long(" ".join(["word"] * 25)) == []


@pytest.mark.parametrize(
    "text", ["But for this, all is well.", "as Spark has it", "It ran 1 tasks.", "Nobody knows."]
)
def test_a_banned_phrase_is_found(text: str) -> None:
    assert BANNED.search(text)
