"""Benchmarks: functions, run by name, that fill the tables of a page of results.

    @benchmark()
    def levels(page: Page, speech: Path, *, seconds: float = 20.0) -> None: ...

The function's parameters are the arguments of its command. Those before the star are positional and
the others are options. Their types and defaults apply, and commas separate the values of a tuple.
The list of benchmarks shows the first line of the docstring. A new row replaces the row with the
same keys in the page's table with the same heads. Other rows and the text around them stay.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, Union, get_args, get_origin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Page", "benchmark", "find_benchmarks", "merge_rows", "run"]
FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results"
Work = Callable[..., None]
_PAGES: dict[str, str] = {}


def benchmark(page: str = "") -> Callable[[Work], Work]:
    """Declare a benchmark; by default its page has the function's name."""

    def declare(work: Work) -> Work:
        _PAGES[work.__name__] = page or work.__name__
        return work

    return declare


class DeclaredBenchmark(NamedTuple):
    """A benchmark's module, its line in the list, and its options."""

    module: str
    about: str
    options: set[str]


def find_benchmarks() -> dict[str, DeclaredBenchmark]:
    """Return all benchmarks by name, without importing them."""
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(
                ast.unparse(each).startswith("benchmark(") for each in node.decorator_list
            ):
                about = (ast.get_docstring(node) or "").partition("\n")[0]
                named = {f"--{each.arg.replace('_', '-')}" for each in node.args.kwonlyargs}
                found[node.name] = DeclaredBenchmark(path.stem, about, {*named, "-o", "--results"})
    return dict(sorted(found.items()))


def run(words: Sequence[str]) -> int:
    """Run the named benchmark, or list all; return the exit status."""
    known = find_benchmarks()
    if not words or words[0] not in known:
        wide = max(map(len, known))
        lines = [f"{name:{wide}}  {about}" for name, (_, about, _) in known.items()]
        usage = "python -m benchmarks NAME [ARGUMENTS] [-o PICTURES]; NAME -h for help"
        print(usage, *lines, sep="\n", file=sys.stderr if words else sys.stdout)
        return 2 if words else 0
    name, *rest = words
    work = getattr(import_module(f"benchmarks.{known[name].module}"), name)
    arguments = vars(create_parser(work).parse_args(rest))
    command = re.sub(r" --results \S+", "", f"python -m benchmarks {shlex.join(words)}")
    page = Page(_PAGES[name], command, arguments.pop("results"), arguments.pop("output"))
    work(page, **arguments)
    return 0


def create_parser(work: Work) -> argparse.ArgumentParser:
    """Create an argument parser from a benchmark's signature."""
    parser = argparse.ArgumentParser(
        f"python -m benchmarks {work.__name__}",
        description=inspect.getdoc(work),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for each in list(inspect.signature(work, eval_str=True).parameters.values())[1:]:
        kind, needed = each.annotation, each.default is each.empty
        if get_origin(kind) in (Union, UnionType):
            kind = get_args(kind)[0]
        settings: dict[str, Any] = {"default": None if needed else each.default}
        if kind is bool:
            settings["action"] = "store_true"
        elif get_origin(kind) is tuple:
            settings["type"] = _create_list_parser(get_args(kind)[0])
        else:
            settings["type"] = kind
        if each.kind is each.KEYWORD_ONLY:
            parser.add_argument(f"--{each.name.replace('_', '-')}", **settings, required=needed)
        else:
            settings |= {} if needed else {"nargs": "?"}
            parser.add_argument(each.name, **settings)
    parser.add_argument("-o", "--output", type=Path, help="folder for pictures")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of result pages")
    return parser


def _create_list_parser(kind: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    return lambda text: tuple(kind(each) for each in text.split(",") if each)


class Page:
    """A page of results that a benchmark fills.

    Attributes:
        pictures: folder for pictures; None to draw none.
    """

    def __init__(self, name: str, command: str, results: Path, pictures: Path | None) -> None:
        self._path, self._command = results / f"{name}.md", command
        self.pictures = pictures

    def note(self, text: str) -> None:
        """Print a result that the page's hand-written text contains."""
        print(text, flush=True)

    def table(
        self, heads: str, rows: Iterable[Iterable[object]], *, keys: int = 1, under: str = ""
    ) -> None:
        """Print each row once it is available, and then write all rows to the page.

        Args:
            heads: column heads, separated by ``|``.
            rows: cells of each row.
            keys: number of cells at the left that identify a row.
            under: title of the section, if a page has several tables with these heads.
        """
        names = [each.strip() for each in heads.split("|")]
        print(f"\n{under}\n\n{_line(names)}" if under else f"\n{_line(names)}", flush=True)
        written = []
        for row in rows:
            written.append([str(cell) for cell in row])
            print(_line(written[-1]), flush=True)
        if self._path.exists():
            text = self._path.read_text(encoding="utf-8")
        else:
            text = f"# {self._path.stem}\n\n```sh\n{self._command}\n```\n"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(merge_rows(text, names, written, keys, under), encoding="utf-8")

    def figure(self, what: str, result: str) -> None:
        """Write one row of the table that results of several commands share."""
        self.table("what | result | command", [(what, result, f"`{self._command}`")])

    def picture(
        self, name: str, paint: Callable[[Figure], None], size: tuple[float, float]
    ) -> None:
        """Draw a picture if a folder for pictures is set."""
        if self.pictures is not None:
            from monitor.plots.canvas import draw

            draw(self.pictures / name, paint, size)


def merge_rows(
    text: str, heads: Sequence[str], rows: Sequence[Sequence[str]], keys: int, under: str = ""
) -> str:
    r"""Merge rows into a page's table with these heads, or append a table; return the new page.

    Example:
        >>> page = "# T\n\n| a | b |\n| --- | ---: |\n| x | 1 |\n| y | 2 |\n\nWords.\n"
        >>> print(merge_rows(page, ["a", "b"], [["y", "3"], ["z", "4"]], 1), end="")
        # T
        <BLANKLINE>
        | a | b |
        | --- | ---: |
        | x | 1 |
        | y | 3 |
        | z | 4 |
        <BLANKLINE>
        Words.
    """
    lines = text.splitlines()
    titles = [i for i, each in enumerate(lines) if re.match("#+ ", each)]
    headings = [i for i in titles if lines[i].lstrip("# ") == under]
    if under and not headings:
        headings = [len(lines) + 1]
        lines += ["", f"## {under}"]
    first = headings[0] if under else 0
    last = min([i for i in titles if i > first and under] or [len(lines)])
    begin = next((i for i in range(first, last) if _cells(lines[i]) == list(heads)), None)
    if begin is None:
        begin = last if not lines[last - 1] else last + 1
        rule = ["---"] * keys + ["---:"] * (len(heads) - keys)
        after = [""] if last < len(lines) else []
        lines[last:last] = [*[""] * (begin - last), _line(heads), _line(rule), *after]
    end = begin + 2
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    line_by_key = {tuple(_cells(line)[:keys]): line for line in lines[begin + 2 : end]}
    line_by_key |= {tuple(row[:keys]): _line(row) for row in rows}
    return "\n".join([*lines[: begin + 2], *line_by_key.values(), *lines[end:]]) + "\n"


def _cells(line: str) -> list[str]:
    """Return the cells of a table row; an empty list for any other line."""
    parts = re.split(r"(?<!\\)\|", line)
    return [each.strip() for each in parts[1:-1]] if line.startswith("|") else []


def _line(cells: Sequence[str]) -> str:
    return re.sub(r"\|  (?=\|)", "| ", f"| {' | '.join(cells)} |")
