"""What the documents say is what the program does."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from markdown_it import MarkdownIt

from benchmarks.simulation import SIZE, Simulation
from monitor.cli import cli
from monitor.events.schema import RECORDS, read_run
from monitor.sources import write_frames
from tests.lab.experiment.made import score_file
from tests.pages import fenced, unfenced

ROOT = Path(__file__).resolve().parents[1]
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("*/*.md")), *RESULTS]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def run_blocks(folder: Path, *codes: str) -> list[list[str]]:
    """What each block of Python prints, in a process of its own."""
    done = [
        subprocess.run(
            [sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True
        )
        for code in codes
    ]
    return [each.stdout.splitlines() for each in done]


@pytest.fixture(scope="module")
def python_blocks() -> list[str]:
    """One call, a stream, a run, people, a corpus, scores, an attack, a live source, notices."""
    return fenced((ROOT / "docs" / "python.md").read_text(encoding="utf-8"), "python")


@pytest.mark.slow
def test_the_ten_lines_and_the_run_run(python_blocks, tmp_path):
    assert len(python_blocks) == 9
    _, code, whole, *_, noticing = python_blocks
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    seconds = np.arange(5 * 16000) / 16000
    voice = np.sin(2 * np.pi * 120 * seconds + np.sin(2 * np.pi * 3 * seconds)) * 0.3
    soundfile.write(tmp_path / "talk.flac", voice, 16000)
    lines, alerts, notices = run_blocks(tmp_path, code, whole, noticing)
    assert notices == [
        "template length None what was learnt from templates of 30 and 60 s is interpolated"
    ]
    told = [line for line in lines if line.startswith("alert")]
    assert told[0] == "alert raised: bits>0.1 for 1 s"
    readings = [line for line in lines if line not in told]
    assert len(readings) == 5
    assert all(re.fullmatch(r" +\d\.0 s +\d\.\d\d bits \(closed-set\)", line) for line in readings)
    assert alerts[0].startswith("bits>0.1 for 1 s raised at ")
    assert [each["type"] for each in read_run(tmp_path / "talk.jsonl")][-1] == "end"


@pytest.mark.slow
def test_the_corpus_is_scored_and_evaluated(python_blocks, tmp_path):
    simulation = Simulation(12)
    for name, first in (("voices", 0), ("anonymised", 2)):
        for person in range(12):
            for session in (first, first + 1):
                said = simulation.frames(person, session, 60.0)
                path = tmp_path / name / f"person{person:02d}" / f"{session}.npz"
                path.parent.mkdir(parents=True, exist_ok=True)
                write_frames(path, said.speech, said.tracks, {"f0": SIZE}, {"f0": 0.01})
    enrolling, scoring, evaluating = python_blocks[3:6]
    ((said,),) = run_blocks(tmp_path, enrolling)
    assert said == "evidence 12"
    (figures,) = run_blocks(tmp_path, evaluating)
    assert re.fullmatch(r"\d\.\d bits \(\d\.\d to \d\.\d\), ZEBRA [A-F0]", figures[0])
    ((trials, bits),) = run_blocks(tmp_path, scoring)
    assert re.fullmatch(r"f0: the right one first in \d+% of \d+ trials,", trials)
    assert 0.5 < float(re.findall(r"([\d.]+) of 3\.6 bits a trial", bits)[0]) < 3.6


@pytest.mark.slow
def test_the_live_source_is_heard_to_its_end(python_blocks, tmp_path):
    (lines,) = run_blocks(tmp_path, python_blocks[7])
    assert [line.split(" s ")[0] for line in lines] == ["1", "2", "3", "4", "5", "6"]
    assert all(re.search(r" \d\.\d\d bits, \d\.\d s late$", line) for line in lines)


@pytest.mark.slow
def test_the_command_that_evaluates_runs(tmp_path):
    page = (ROOT / "docs" / "evaluate.md").read_text(encoding="utf-8")
    command, _, validation = fenced(page, "sh")
    score_file(tmp_path / "scores.npz", {"voice": {(10.0, 30.0): (1.0, 30.0)}}, speakers=12)
    draw, names = np.random.default_rng(0), [f"s{i}" for i in range(10)]
    for name, lead in (("original", 3.0), ("anonymised", 0.5)):
        scores = draw.normal(size=(20, 10)) + lead * np.eye(10)[np.arange(20) % 10]
        np.save(tmp_path / f"{name}.npy", scores)
    (tmp_path / "speakers.txt").write_text("\n".join(names * 2) + "\n")
    for each, said, made in (
        (command, "anonymised", "report.html"), (validation, "Cllr cal", "voice.html")
    ):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(each.replace("\\\n", " "))],
            cwd=tmp_path, check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert said in done.stdout
        assert (tmp_path / made).stat().st_size > 10_000


def anchors(text: str) -> set[str]:
    """What links can point to: the headings, as GitHub and MkDocs spell them."""
    lines = unfenced(text).splitlines()
    titles = [line.lstrip("#").strip().lower() for line in lines if line.startswith("#")]
    return {re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles}


def dead_links(path: Path) -> list[str]:
    """Links of a page to files or headings that are not there."""
    dead = []
    text = unfenced(path.read_text("utf-8"))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        there = target.exists() and (not anchor or anchor in anchors(target.read_text("utf-8")))
        dead += [] if there else [link]
    return dead


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path):
    assert dead_links(path) == []


def test_the_finder_of_dead_links_can_find(tmp_path):
    page = tmp_path / "a.md"
    page.write_text("# One: `two` (3)\n[a](#one-two-3) [b](#two) [c](b.md) [d](a.md#no)\n")
    assert dead_links(page) == ["#two", "b.md", "a.md#no"]


def commands_shown(text: str) -> list[str]:
    """Commands of this program in a page: lines of shell, and those within sentences."""
    shell = "\n".join(fenced(text, "sh"))
    lines = shell.replace("\\\n", "").splitlines()
    prose = unfenced(text)
    lines += [" ".join(each.split()) for each in re.findall(r"`(monitor [^`]+)`", prose)]
    found = [re.search(r"(?:^|[ /])monitor ([a-z]+ .*)", line) for line in lines]
    return [match[1] for match in found if match]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_shown_has_its_options(path):
    top = cli.make_context("monitor", [], resilient_parsing=True)
    for line in commands_shown(path.read_text(encoding="utf-8")):
        words = line.split("#")[0].split("|")[0].split()
        command = cli.get_command(top, words[0])
        assert command is not None, line
        known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        parts = getattr(command, "commands", {}).values()
        known |= {name for part in parts for each in part.params for name in each.opts}
        given = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert given <= known | {"--help"}, line


def test_no_figure_was_left_open():
    for path in PAGES:
        text = re.sub(r"`[^`]*`", "", unfenced(path.read_text("utf-8")))
        assert not re.search(r"@@|TODO|XXX", text), path


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_result_says_which_command_makes_it(path):
    made = r"(?:python -m (?:benchmarks|recipes)\.|^monitor )([\w.]+)"
    shown = re.findall(made, path.read_text("utf-8"), flags=re.MULTILINE)
    assert any(path.stem in name.split(".") for name in shown) or path.stem == "speed"  # of many


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)?", text))


def invented(page: str, texts: dict[str, str]) -> list[str]:
    """Numbers in the rows of a table that none of the results linked there has."""
    found = []
    for row in re.findall(r"^\|.*results/.*$", page, flags=re.MULTILINE):
        known = numbers(" ".join(texts[name] for name in re.findall(r"results/(\w+)\.md", row)))
        found += [f"{each}: {row}" for each in numbers(re.sub(r"\]\([^)]*\)", "", row)) - known]
    return found


@pytest.mark.parametrize("name", ["measurements.md", "speed.md"])
def test_what_is_quoted_of_a_result_stands_there(name):
    texts = {path.stem: path.read_text("utf-8") for path in RESULTS}
    assert invented((ROOT / "docs" / name).read_text("utf-8"), texts) == []


def test_every_result_is_quoted():
    page = (ROOT / "docs" / "measurements.md").read_text("utf-8")
    assert set(re.findall(r"results/(\w+)\.md", page)) == {path.stem for path in RESULTS}


def test_the_finder_of_invented_numbers_can_find():
    row = "| a | 1.5 of 7 | [b](../benchmarks/results/b.md#3) |"
    assert invented(row, {"b": "1.5 and 7"}) == []
    assert invented(row, {"b": "1.52 and 7"}) == [f"1.5: {row}"]


def test_every_example_is_in_the_guide_to_python():
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    examples = {path.name for path in (ROOT / "examples").iterdir() if path.name[:1].isdigit()}
    assert set(re.findall(r"\(\.\./examples/([^)]+)\)", page)) == examples


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", index))
    assert linked == {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_table_is_shown(path):
    text = path.read_text(encoding="utf-8")
    assert broken_tables(text) == []


def broken_tables(text: str) -> list[str]:
    """Lines of Markdown that were meant as a table's and are not shown, or shown short of cells."""
    broken, lines = [], text.splitlines()
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.map is None:
            continue
        source = [line.strip() for line in lines[slice(*token.map)]]
        if token.type == "inline" and token.level < 2:  # a paragraph, no cell
            broken += [line for line in source if line.startswith("|")]
        elif token.type == "table_open":
            rows = [line for line in source if line]
            cells = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
            broken += [row for row, n in zip(rows, cells, strict=True) if n != cells[0]]
    return broken


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("| a | b |\n| --- | --- |\n| 1 | 2 |", 0),
        ("| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| 3 | 4 |", 1),
        ("| a | b |\n| --- | --- |\n| 1 | 2 | 3 |", 1),
        ("| a | b |\n| --- | --- |\n| 1 |", 1),
        ("| a | b |\n| --- |\n| 1 | 2 |", 3),
        ("| a |\n| --- |\n| `x \\| y` |", 0),
    ],
)
def test_the_finder_of_broken_tables_can_find(text, count):
    assert len(broken_tables(text)) == count


def with_tables(text: str) -> str:
    """docs/records.md with the table of each record as `monitor.events` declares it."""
    for record in RECORDS:
        head, section = re.split(rf"(?m)^(?=## {record.title}$)", text, maxsplit=1)
        text = head + re.sub(
            r"^\|.*(?:\n\|.*)*", lambda _, r=record: r.table, section, count=1, flags=re.MULTILINE
        )
    return text


def test_the_tables_of_the_records_are_those_declared():
    text = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
    assert text == with_tables(text)


def test_a_key_that_is_added_is_missed_in_the_tables():
    text = "## start\n\n| key | meaning |\n| --- | --- |\n\n" + "".join(
        f"## {record.title}\n\n{record.table}\n\nprose\n\n" for record in RECORDS[1:]
    )
    assert with_tables(text).count("| `rank_model_speakers` |") == 1
    assert with_tables(text).endswith(f"{RECORDS[-1].table}\n\nprose\n\n")


def test_ci_runs_the_test_command_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (install,) = re.findall(r"pip install -e '(\.\[[a-z,]+\])'", README)
    assert f"pip install -q -e '{install}'" in script
    assert "-m pytest" in script


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_installed_from_an_index_that_does_not_have_it(path):
    """The package is on none: a copy of the repository is installed, or a wheel made of it."""
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"pip install[^\n]*speaker-disclosure-monitor", text) == []


def test_the_readme_says_how_the_program_is_found_before_it_calls_it_by_name_alone():
    activate, bare = README.index(". .venv/bin/activate"), re.search(r"[`\n]monitor \w", README)
    assert bare is not None
    assert activate < bare.start()


if __name__ == "__main__":
    records = ROOT / "docs" / "records.md"
    records.write_text(with_tables(records.read_text(encoding="utf-8")), encoding="utf-8")
