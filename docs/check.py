"""Check the documents: ``python docs/check.py``; ``--write`` makes the tables of how much is much.

Links and anchors have targets, shown commands have their options, mentioned names and files exist,
quoted figures are in the linked result, cited sections exist, tables are whole, generated parts are
up to date, and the English is plain (`docs.english`).
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from docs.english import find_too_many  # noqa: E402

DOCS = ROOT / "docs"
SCOREBOARD_PAGE = DOCS / "voice-changers-table.html"
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *RESULTS})
README_WORDS, README_COLUMNS = 600, 72
CODE = ("monitor", "tests", "benchmarks", "recipes", "examples", "docs")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
_TEXT = {".py", ".md", ".toml", ".html", ".js", ".css", ".svg", ".json", ".yml", ""}
_OUTSIDE = re.compile(  # its parts are apart, so that this line is none
    rf"\b(?:{'METH' + 'OD'}|{'CONVEN' + 'TIONS'}|{'DES' + 'IGN'})(?:\.md\b| sections? \d+| \d+\b)"
    r"|\.\./shared/[\w/]*\.md\b"
)
_SECTION = re.compile(r"docs/method\.md sections? \d+(?:(?: and | to |, )\d+)*")


def read(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


def prose(path: Path) -> str:
    """Return a page without its blocks of code."""
    return _BLOCK.sub("", read(path))


def find_dead_links(path: Path) -> Iterator[str]:
    """Yield links and pictures to files or headings that are not there."""
    text = prose(path)
    for link in re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"\s]+)\"", text):
        link = link[0] or link[1]
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists() or (anchor and anchor not in list_anchors(target)):
            yield f"dead link {link}"


def list_anchors(path: Path) -> set[str]:
    """Return the headings of a page, as GitHub and MkDocs spell them in links."""
    titles = re.findall(r"^#+ +(.*)$", prose(path), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def find_unknown_options(path: Path) -> Iterator[str]:
    """Yield commands of this program whose options it does not have."""
    from monitor.cli import cli
    from monitor.cli.help import typed

    blocks = "\n".join(code for kind, code in _BLOCK.findall(read(path)) if kind == "sh")
    lines = blocks.replace("\\\n", "").splitlines()
    lines += [" ".join(code.split()) for code in re.findall(r"`(monitor [^`]+)`", prose(path))]
    top = cli.make_context("monitor", [], resilient_parsing=True)
    for line in lines:
        shown = re.search(r"(?:^|[ /])monitor (?:--config \S+ )?([a-z]+ .*)", line)
        if shown is None:
            continue
        words = shown[1].split("#")[0].split("|")[0].split()
        command = cli.get_command(top, words[0])
        parts = [command, *getattr(command, "commands", {}).values()]
        options = {name for part in parts if part for name in typed(part)}
        asked = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        if command is None or asked - options - {"--help"}:
            yield f"no such command or option: {line}"


def find_missing_names(path: Path) -> Iterator[str]:
    """Yield names of the code, and files of the repository, that are not there."""
    for name in set(re.findall(r"`(monitor(?:\.\w+)+)[`(]", prose(path))):
        if not re.search(r"\.(?:py|json|css|js|npz)$", name) and not exists(name):
            yield f"no {name}"
    files = re.findall(r"\b((?:monitor|tests|benchmarks|recipes|examples)/[\w/]+\.\w+)", read(path))
    for name in set(files):
        if not any(ROOT.glob(re.sub(r"\b[A-Z]+\b", "*", name))):  # capitals stand for any
            yield f"no file {name}"
    for name in re.findall(r"python -m (recipes(?:\.\w+)+)", read(path)):
        if not (ROOT / (name.replace(".", "/") + ".py")).exists():
            yield f"no module {name}"


def find_unknown_commands(path: Path) -> Iterator[str]:
    """Yield commands that prose lists in code, beside ones that this program has, and has not."""
    from monitor.cli import cli

    known = set(cli.list_commands(cli.make_context("monitor", [], resilient_parsing=True)))
    text = " ".join(prose(path).split())
    for run in re.findall(r"(?:`[a-z]+`(?:, | and | or )+)+`[a-z]+`", text):
        names = set(re.findall(r"`([a-z]+)`", run))
        if len(names & known) > 1:
            yield from (f"no command {name}" for name in sorted(names - known))


def find_old_examples() -> Iterator[tuple[str, str]]:
    """Yield shipped documents that another version made."""
    from monitor.version import __version__

    for path in sorted(DOCS.glob("*.html")):
        text = read(path)
        for version in re.findall(r"[Mm]ade by monitor ([\d.]*\d)", text):
            # hours of measurement that the page itself dates are not made again for each version
            if version != __version__ and f"Measured with {version}" not in text:
                yield str(path.relative_to(ROOT)), f"is of {version}: make it again"


def find_old_words() -> Iterator[tuple[str, str]]:
    """Yield pages and drawings with names that the code has given up."""
    for path in (*PAGES, *DOCS.glob("*.svg")):
        if path.name != "CHANGELOG.md":
            for word in re.findall(r"\b(?:rank )?laws\b", read(path)):
                yield str(path.relative_to(ROOT)), f"{word}: call them rank models"


def find_unknown_benchmarks(path: Path) -> Iterator[str]:
    """Yield benchmarks that are not there, and options that they do not have."""
    from benchmarks.page import find_benchmarks

    known = find_benchmarks()
    text = read(path).replace("\\\n", " ")
    for name, words in re.findall(r"python -m benchmarks ([a-z]\w*)([^`\n#]*)", text):
        if name not in known:
            yield f"no benchmark {name}"
        elif unknown := {*re.findall(r" (--?[a-z][\w-]*)", words)} - known[name].options:
            yield f"python -m benchmarks {name} has no {', '.join(sorted(unknown))}"


def exists(dotted: str) -> bool:
    """Return whether a module, or an attribute in one, has this name."""
    parts = dotted.split(".")
    for split in range(len(parts), 0, -1):
        try:
            value: Any = import_module(".".join(parts[:split]))
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("monitor"):
                return True  # an extra is missing, not the module
            continue
        for part in parts[split:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


def find_broken_tables(path: Path) -> Iterator[str]:
    """Yield lines that were meant as a table's and are not shown, or lack cells."""
    lines = read(path).splitlines()
    for token in MarkdownIt("commonmark").enable("table").parse("\n".join(lines)):
        source = [line.strip() for line in lines[slice(*(token.map or (0, 0)))]]
        if token.type == "inline" and token.level < 2:  # a paragraph, no cell
            yield from (f"no table: {line}" for line in source if line.startswith("|"))
        elif token.type == "table_open":
            rows = [line for line in source if line]
            cells = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
            yield from (
                f"cells: {row}" for row, n in zip(rows, cells, strict=True) if n != cells[0]
            )


def find_leftovers(path: Path) -> Iterator[str]:
    """Yield open figures, and installations from an index that does not have the package."""
    text = re.sub(r"`[^`]*`", "", prose(path))
    yield from (f"left open: {mark}" for mark in re.findall(r"@@|TODO|XXX", text))
    yield from re.findall(r"pip install[^\n]*speaker-disclosure-monitor", read(path))


def find_invented_numbers(path: Path) -> Iterator[str]:
    """Yield numbers in rows that link results, of which none has them."""
    if path not in (DOCS / "measurements.md", DOCS / "speed.md"):
        return
    for row in re.findall(r"^\|.*results/.*$", read(path), flags=re.MULTILINE):
        names = re.findall(r"results/(\w+)\.md", row)
        known = _numbers(" ".join(read(ROOT / f"benchmarks/results/{name}.md") for name in names))
        for number in _numbers(re.sub(r"\]\([^)]*\)", "", row)) - known:
            yield f"{number} stands in none of its results: {row}"


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)?", text))


def find_long_start(path: Path) -> Iterator[str]:
    """Yield a README of more than a screen and a half, and its commands that a page would cut."""
    if path != ROOT / "README.md":
        return
    if (words := len(read(path).split())) > README_WORDS:
        yield f"{words} words, over {README_WORDS}"
    for _, code in _BLOCK.findall(read(path)):
        yield from (f"over {README_COLUMNS} columns: {line}" for line in code.splitlines()
                    if len(line) > README_COLUMNS)  # fmt: skip


def find_missing_command(path: Path) -> Iterator[str]:
    """Yield a complaint of a result that does not say which command makes it."""
    if path in RESULTS and path.stem != "speed":  # of many
        made = r"(?:python -m (?:benchmarks |recipes\.)|^monitor )([\w.]+)"
        names = re.findall(made, read(path), flags=re.MULTILINE)
        if not any(path.stem in name.split(".") for name in names):
            yield "no command makes it"


def find_left_out() -> Iterator[tuple[str, str]]:
    """Yield pages, results and examples that no summary links."""
    summaries: dict[str, tuple[str, Iterable[str]]] = {
        "index.md": (
            r"\]\(([\w-]+)\.md\)",
            (p.stem for p in DOCS.glob("*.md") if p.stem != "index"),
        ),
        "measurements.md": (r"results/(\w+)\.md", (path.stem for path in RESULTS)),
        "python.md": (
            r"\(\.\./examples/([^)]+)\)",
            (path.name for path in (ROOT / "examples").iterdir() if path.name[:1].isdigit()),
        ),
    }
    for name, (link, pages) in summaries.items():
        linked = set(re.findall(link, read(DOCS / name)))
        yield from ((name, f"does not link {page}") for page in sorted(set(pages) - linked))


def find_wrong_citations() -> Iterator[tuple[str, str]]:
    """Yield citations of sections that the method does not have, and of pages a clone lacks."""
    sections = re.findall(r"^## (\d+)\. ", read(DOCS / "method.md"), flags=re.MULTILINE)
    if sections != [str(number) for number in range(1, 16)]:
        yield "docs/method.md", "its sections keep their numbers, 1 to 15"
    paths = [path for folder in CODE for path in (ROOT / folder).rglob("*")]
    for path in (*paths, *ROOT.glob("*"), *(ROOT / ".ci").glob("*")):
        if path.suffix not in _TEXT or not path.is_file():
            continue
        text = " ".join(re.sub(r"\n\s*#", " ", read(path)).split())
        place = str(path.relative_to(ROOT))
        for citation in _SECTION.findall(text):
            if missing := {*re.findall(r"\b\d+\b", citation)} - {*sections}:
                yield place, f"no section {', '.join(sorted(missing))}"
        yield from (
            (place, f"cites {page}, which a clone lacks") for page in _OUTSIDE.findall(text)
        )


def find_unknown_keys() -> Iterator[tuple[str, str]]:
    """Yield keys in the glossary that no record has, and terms that stand there twice."""
    from monitor.events.schema import SCHEMA

    rows = re.findall(
        r"^\| (?!term)(.+?) \| .* \| (.*?) ?\|$", read(DOCS / "glossary.md"), re.MULTILINE
    )
    known = {"type", *list_keys(SCHEMA)}
    for _, keys in rows:
        for key in {*re.findall(r"`(\w+)`", keys)} - known:
            yield "docs/glossary.md", f"no record has {key}"
    terms = [term.strip() for row, _ in rows for term in re.split(r",|\(", row)]
    yield from (("docs/glossary.md", f"{t} stands twice") for t in {*terms} if terms.count(t) > 1)


def list_keys(schema: Any) -> Iterator[str]:
    """Yield the keys of records, nested ones too."""
    parts = (
        schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    )
    if isinstance(schema, dict) and isinstance(properties := schema.get("properties"), dict):
        yield from properties
    for part in parts:
        yield from list_keys(part)


# ------------------------------------------------------------------------------------- generated


def table_of_families() -> str:
    """Return the families of metrics, as each declares itself."""
    from monitor.lab.evaluation.family import families

    based_on = {"matrix": "ranks", "pool": "all scores"}
    rows = ["| family | figures | based on | shown first |", "|---|---|---|---|"]
    for family in families():
        needs = {need for entry in family.figures for need in entry.needs or ()} | {*family.needs}
        names = [entry.name for entry in family.figures if entry.key in family.main]
        cells = (
            f"{family.title} (`{family.key}`)",
            str(len(family.figures)),
            ", ".join(sorted(based_on.get(need, f"`--{need}`") for need in needs)),
            " ".join(f"`{name}`" for name in names) or "-",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def write_how_much(pages: dict[Path, str]) -> dict[Path, str]:
    """Return README.md and docs/how-much.md with their tables of `monitor.how_much`."""
    from monitor.how_much import TITLE, tables, to_markdown

    heading = rf"(?<=# {re.escape(TITLE)}\n\n)"
    parts = {
        ROOT / "README.md": (rf"{heading}\|.*?(?=\n\n)", tables()[0].to_markdown()),
        DOCS / "how-much.md": (rf"{heading}.*?(?=\n\n## )", to_markdown()),
    }
    return {
        path: re.sub(part, made.replace("\\", r"\\"), pages[path], count=1, flags=re.DOTALL)
        for path, (part, made) in parts.items()
    }


NAMING = (ROOT / "codemeta.json", ROOT / "CITATION.cff", DOCS / "ci.md")
"""Files that name the address of the repository."""


def write_address(pages: dict[Path, str], address: str) -> dict[Path, str]:
    """Return the files of `NAMING` with this address; unchanged without one."""
    if not address:
        return {path: pages[path] for path in NAMING}
    codemeta, citation, ci = (pages[path] for path in NAMING)
    codemeta = re.sub(r'  "codeRepository": .*\n', "", codemeta)
    codemeta = re.sub(
        r'(  "identifier": .*\n)', rf'\1  "codeRepository": "{address}",\n', codemeta, count=1
    )
    citation = re.sub(r"(?m)^repository-code: .*\n", "", citation)
    citation = re.sub(
        r"(?m)^(license: .*\n)", rf"\1repository-code: {address}\n", citation, count=1
    )
    owner = address.rstrip("/").split("/")[-2]
    return dict(zip(NAMING, (codemeta, citation, ci.replace("OWNER/", f"{owner}/")), strict=True))


def find_unmeasured() -> Iterator[tuple[str, str]]:
    """Yield figures of `monitor.how_much` that neither its benchmark nor calibration has."""
    from monitor.how_much import PURPOSES, USUAL

    for row in USUAL:
        if (row.low, row.high) != (range_ := read_spread(row.seconds)):
            yield "monitor/how_much.py", f"{row.seconds:g} s: calibration has {range_}"
    usual = {(f"{u.seconds:g} s", f"{u.median:.1f}", f"{u.low:.1f} to {u.high:.1f}") for u in USUAL}
    after = {
        (f"bits>{p.bits}", "over 20 s" if p.after is None else f"{p.after:g} s") for p in PURPOSES
    }
    rows = re.findall(r"^\| (.*) \|$", read(ROOT / "benchmarks/results/usual.md"), re.M)
    measured = [row.split(" | ") for row in rows]
    found = {tuple(row[:3]) for row in measured} | {(row[0], row[-1]) for row in measured}
    yield from (
        ("monitor/how_much.py", f"not in benchmarks/results/usual.md: {' | '.join(row)}")
        for row in sorted({*usual, *after} - found)
    )


def find_stale_scoreboard() -> Iterator[tuple[str, str]]:
    """Yield the page of the shipped scoreboard if its text differs."""
    from monitor.lab.attacks.scoreboard import Scoreboard

    texts = [
        re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)
        for text in (read(SCOREBOARD_PAGE), Scoreboard.shipped().page())
    ]
    if texts[0] != texts[1]:
        yield str(SCOREBOARD_PAGE.relative_to(ROOT)), "is stale: run python docs/check.py --write"


@cache
def _shipped_attacker() -> Any:
    from monitor import Monitor, Population
    from monitor.population import DEMO_SPEAKER, demo_frames
    from monitor.sources.frames import FramesFile

    tracks = tuple(FramesFile(demo_frames()).stream_info.tracks)
    return Monitor(Population.reference(), tracks, watch=DEMO_SPEAKER).attacker


def read_spread(seconds: float) -> tuple[float, float]:
    """Return the range of 9 of 10 voices of this length by the shipped calibration, bits."""
    attacker = _shipped_attacker()
    spread = attacker.spread.evaluate_at(seconds)
    support = attacker.joint.ratios.rank_model.evaluate_at(np.array([seconds])).support[0]
    return round(spread.low, 1), round(float(min(spread.high, support)), 1)


def table_of_rooms() -> str:
    """Return the rooms of `monitor` by layer, each with what its docstring says first."""
    source = ast.parse(read(ROOT / "tests" / "test_layers.py"))  # needs pytest to import
    (layers,) = (
        ast.literal_eval(node.value)
        for node in source.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS"
    )
    rows = ["| layer | room | what is in it |", "|---|---|---|"]
    for level, layer in enumerate(layers, 1):
        for room in sorted(layer):
            path = ROOT / "monitor" / f"{room}.py"
            path = path if path.exists() else ROOT / "monitor" / room / "__init__.py"
            text = (ast.get_docstring(ast.parse(read(path))) or "").splitlines()[0]
            rows.append(f"| {level} | `{room}` | {text.rstrip('.').replace('``', '`')} |")
    return "\n".join(rows)


CHECKS = (
    find_dead_links,
    find_unknown_options,
    find_unknown_commands,
    find_missing_names,
    find_unknown_benchmarks,
    find_broken_tables,
    find_leftovers,
    find_invented_numbers,
    find_long_start,
    find_missing_command,
)


def main(write: bool) -> int:
    """Print what is wrong, a line each; return 1 where anything is. Or write what is generated."""
    pages = {path: read(path) for path in (ROOT / "README.md", DOCS / "how-much.md", *NAMING)}
    urls = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]["urls"]
    made = {**write_how_much(pages), **write_address(pages, urls.get("Repository", ""))}
    if write:
        from monitor.lab.attacks.scoreboard import Scoreboard

        for path, text in {**made, SCOREBOARD_PAGE: Scoreboard.shipped().page()}.items():
            path.write_text(text, encoding="utf-8")
        return 0
    complaints = [(str(p.relative_to(ROOT)), line) for p in PAGES for c in CHECKS for line in c(p)]
    complaints += [*find_left_out(), *find_wrong_citations(), *find_unknown_keys()]
    complaints += [*find_unmeasured(), *find_stale_scoreboard()]
    complaints += [*find_old_examples(), *find_old_words(), *find_too_many()]
    complaints += [
        (str(path.relative_to(ROOT)), "is stale: run python docs/check.py --write")
        for path in pages
        if made[path] != pages[path]
    ]
    for place, line in complaints:
        print(f"{place}: {line}")  # noqa: T201
    return bool(complaints)


if __name__ == "__main__":
    if "--rooms" in sys.argv:
        print(table_of_rooms())  # noqa: T201
    else:
        raise SystemExit(main("--write" in sys.argv))
