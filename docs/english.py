"""Sentences that a native reader would read twice, in pages, help, messages and docstrings.

`docs/check.py` fails if a group has more of them than `LIMITS` allows. ``python docs/english.py``
prints the shares, ``python docs/english.py GROUP`` every sentence of a group with its patterns. A
match is a place to look at: quoted output and the field's own terms may stay.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIMITS = {"docs": 3.5, "help": 2.0, "messages": 1.0, "docstrings": 1.5, "page": 2.0}
"""Largest share of matching sentences per group, percent."""
WORDS = 30_000
"""Largest number of words of README and the pages of docs/."""
_THINGS = "row line file folder curve column reading template session process core number model"
_PATTERNS = {
    "begins with Of": r"^Of (?!course)[a-z\d]",
    "who or what without a noun": r"^(?:Who(?:ever|m)?|What)\b(?!.*\?$)"
    r"|[,:;] whom?ever\b|\b(?:from|for|of|to) who(?:ever)?\b",
    "is none": r"\b(?:are|is|was|were) none\b",
    "somebody": r"(?i)\b(?:any|every|no|some)body\b",
    "says, tells": r"\b(?:say(?:s|ing)?|said|tell(?:s|ing)?|told)\b(?! apart)",
    "hears": r"\bhear(?:s|d|ing)?\b",
    "stands, lies": r"\b(?:stand(?:s|ing)?|stood|lies|lying)\b(?! (?:for|out|still)\b)",
    "so much": r"\b(?:so (?:few|little|long|many|much|often)|as much of)\b(?! (?:as|that)\b)",
    ", else": r"[,;] else\b",
    "anew": r"\b(?:anew|afresh|go(?:es|ing)? on)\b",
    "learnt": r"\blearnt\b",
    "a row a person": rf"\b(?:an?|one) (?:{_THINGS.replace(' ', '|')}|monitor|figure|word|name)"
    r" an? [a-z]+\b",
    "noun of noun of noun": r"\bof [^,.:;]{1,25} of [^,.:;]{1,25} of\b",
    "whose": r"\bwhose\b",
    "two colons": r"[:;]\s.*[:;]\s",
    "over 25 words": r"^(?:\S+\s+){25}\S",
}
PATTERNS = {name: re.compile(pattern) for name, pattern in _PATTERNS.items()}
_VERBATIM = re.compile(r"`[^`]*`|\{[^}]*\}|https?://\S+")
_HEADING = re.compile(r"\n\s*(?:Args|Attributes|Examples?|Raises|Returns|Source|Yields):\s*\n")
_ENTRY = re.compile(r"\n\s+[\w., *]{1,40}: ")
_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(])|\n\s*\n|\n\s*[-*|] ")
_HELP = {"help", "short_help", "epilog", "metavar"}


class Text(NamedTuple):
    """Prose of a group, and where it begins."""

    group: str
    path: Path
    line: int
    prose: str


class Match(NamedTuple):
    """A sentence that matches, with its place and the names of its patterns."""

    place: str
    patterns: tuple[str, ...]
    sentence: str


def split_sentences(prose: str) -> Iterator[str]:
    """Yield sentences of at least four words, with code as X."""
    prose = _ENTRY.sub("\n\n", _HEADING.sub("\n\n", _VERBATIM.sub("X", prose)))
    for part in _ENDS.split(prose):
        if len(words := part.split()) >= 4:
            yield " ".join(words)


def find_matches() -> tuple[dict[str, list[Match]], dict[str, int]]:
    """Return the matching sentences and the number of all sentences, by group."""
    matches: dict[str, list[Match]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for group, path, line, prose in list_texts():
        for sentence in split_sentences(prose):
            counts[group] += 1
            if names := tuple(name for name, each in PATTERNS.items() if each.search(sentence)):
                place = f"{path.relative_to(ROOT)}:{line}"
                matches[group].append(Match(place, names, sentence))
    return matches, counts


def find_too_many() -> Iterator[tuple[str, str]]:
    """Yield the matches of groups over their limit, and the pages if they are too long."""
    matches, counts = find_matches()
    for group, limit in LIMITS.items():
        share = 100 * len(matches[group]) / max(counts[group], 1)
        if share > limit:
            yield group, f"{share:.1f} % of its sentences match (docs/english.py), over {limit:g} %"
            yield from (
                (m.place, f"[{', '.join(m.patterns)}] {m.sentence}") for m in matches[group]
            )
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in _list_guides())
    if words > WORDS:
        yield "docs", f"{words} words, over {WORDS}"


def list_texts() -> Iterator[Text]:
    """Yield all prose of the repository, by group."""
    top = (ROOT / f"{name}.md" for name in ("SECURITY", "CONTRIBUTING", "CHANGELOG"))
    for path in (*_list_guides(), *top, *(ROOT / "docs" / "api").glob("*.md")):
        yield from _read_page(path)
    for path in sorted((ROOT / "monitor").rglob("*.py")):
        yield from _read_module(path)
    for path in sorted((ROOT / "monitor" / "web" / "static").iterdir()):
        yield from _read_web(path)


def _list_guides() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def _read_page(path: Path) -> Iterator[Text]:
    """Yield the paragraphs and the cells of tables of a page."""
    page = re.sub(
        r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), path.read_text(encoding="utf-8"),
        flags=re.DOTALL | re.MULTILINE,
    )  # fmt: skip
    block: list[str] = []
    for number, row in enumerate([*page.splitlines(), ""], 1):
        if row.strip() and not row.startswith(("#", "<", "!", "|")):
            block.append(row)
            continue
        if block:
            yield Text("docs", path, number - len(block), "\n".join(block))
            block = []
        if row.startswith("|"):
            yield from (Text("docs", path, number, cell) for cell in row.strip("| ").split("|"))


def _read_module(path: Path) -> Iterator[Text]:
    """Yield the docstrings, comments, help and other strings of a module."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    bare = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    helping = {
        id(part)
        for node in nodes
        if isinstance(node, ast.keyword) and node.arg in _HELP
        for part in ast.walk(node.value)
    }
    inner = {id(v) for node in nodes if isinstance(node, ast.JoinedStr) for v in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (str(v.value) if isinstance(v, ast.Constant) else "X" for v in node.values)
            prose = "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            prose = node.value
        else:
            continue
        is_usage = "cli" in path.parts and "    monitor " in prose
        if id(node) in helping or (id(node) in bare and is_usage):
            yield Text("help", path, node.lineno, prose)
        elif id(node) not in inner:
            yield Text("docstrings" if id(node) in bare else "messages", path, node.lineno, prose)
    yield from _read_comments(path, source)


def _read_comments(path: Path, source: str) -> Iterator[Text]:
    """Yield comments, with those on adjacent lines joined."""
    comment: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comment.append(token)
        elif token.type != tokenize.NL and comment:
            prose = " ".join(c.string.lstrip("# ") for c in comment if "noqa" not in c.string)
            yield Text("docstrings", path, comment[0].start[0], prose)
            comment = []


def _read_web(path: Path) -> Iterator[Text]:
    """Yield the text of HTML, and comments and strings of scripts."""
    form = {
        ".html": r">([^<>]{12,})<",
        ".js": r"//([^\n]*)|/\*(.*?)\*/|'((?:\\.|[^'\\\n])*)'|\"((?:\\.|[^\"\\\n])*)\"|`([^`]*)`",
    }.get(path.suffix)
    if form is None:
        return
    source = path.read_text(encoding="utf-8")
    for match in re.finditer(form, source, flags=re.DOTALL):
        prose = re.sub(r"\$\{[^}]*\}", "X", next(filter(None, match.groups()), ""))
        if path.suffix == ".html" or not re.search(r"=>|[{}=<>]|\b(?:const|return)\b", prose):
            yield Text("page", path, source.count("\n", 0, match.start()) + 1, prose)


def main(group: str | None) -> None:
    """Print the share of each group, or every sentence of one."""
    matches, counts = find_matches()
    for match in matches[group] if group else ():
        print(f"{match.place}: [{', '.join(match.patterns)}] {match.sentence}")  # noqa: T201
    for name in () if group else LIMITS:
        share = len(matches[name]) / counts[name]
        print(f"{name:10} {len(matches[name]):5} of {counts[name]:5} ({share:.1%})")  # noqa: T201


if __name__ == "__main__":
    main(next(iter(sys.argv[1:]), None))
