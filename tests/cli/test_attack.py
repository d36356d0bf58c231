"""monitor attack, as people use it."""

from __future__ import annotations

import csv
import json
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.attacks.conftest import corpora  # noqa: F401  a fixture

TINY = ("--features", "f0", "--seconds", 2, "--template", 6, "--trials", 3, "--segments", "1,2",
        "--jobs", 1)  # fmt: skip


@pytest.fixture
def voices(corpora: Callable[..., Path]) -> Path:  # noqa: F811
    return corpora()


@pytest.mark.slow
def test_one_command_tests_a_anonymiser(run, voices, tmp_path):
    done = run("attack", voices, "-o", tmp_path / "out", "--method", "noise:0", *TINY)
    assert done.code == 0, done.err
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"index.html", "results.json", "results.csv", "bits.svg", "bits.png", "kept"}
    for path in (tmp_path / "out", *(tmp_path / "out").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    rows = found["rows"]
    assert {(r["method"], r["attacker"]) for r in rows} == {
        ("none", "ignorant"), ("noise:0", "ignorant"), ("noise:0", "lazy-informed"),
    }  # fmt: skip
    # the first thing that is said is the strongest attacker's
    worst = max(
        r["figures"]["srd.mean_bits_model"]["value"] for r in rows if r["method"] == "noise:0"
    )
    (first, *_) = done.out.splitlines()
    assert first.startswith(f"noise:0: {worst:.2f} bits")
    assert found["headline"][0].startswith(f"noise:0: {worst:.2f} bits")
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.index(f"{worst:.2f} bits") < page.index("<svg")
    assert "http" not in page.replace("http://www.w3.org", "")
    with (tmp_path / "out" / "results.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(rows)
    assert {line["speakers"] for line in lines} == {"6"}
    assert not list(tmp_path.rglob("*.wav"))
    assert not list(tmp_path.rglob("*.flac"))


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(command, voices, tmp_path):
    arguments = [*command, "attack", voices, "-o", tmp_path / "out", *map(str, TINY),
                 "--anonymiser-command", f"sh -c 'touch {tmp_path}/begun; sleep 99'"]  # fmt: skip
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 100
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1]
    assert process.returncode == 130, err
    assert [line for line in err.splitlines() if line][-2:] == [
        "monitor: what was heard is kept; to go on, run the same command again",
        "monitor: interrupted",
    ]


@pytest.mark.slow
def test_a_scoreboard_has_ones_own_methods_among_those_that_people_use(run, voices, tmp_path):
    table = tmp_path / "table.json"
    asked = ("attack", voices, "-o", tmp_path / "out", "--method", "noise:0", *TINY)
    refused = run(*asked, "--scoreboard", tmp_path / "table.txt")
    assert (refused.code, "must end in" in refused.err) == (2, True)
    done = run(*asked, "--scoreboard", table)
    assert done.code == 0, done.err
    assert "other people than the others': no comparison" in done.err
    rows = json.loads(table.read_text())["rows"]
    assert {"noise:0", "none"} == {row["name"] for row in rows if row["speakers"] == 6}
    assert any(row["how"].startswith("sox") for row in rows)
    assert run(*asked, "--scoreboard", table).code == 0
    assert json.loads(table.read_text())["rows"] == rows


@pytest.mark.slow
def test_attributes_are_told_beside(run, voices, tmp_path):
    table = tmp_path / "people.csv"
    lines = [f"r{i},{'low' if i < 3 else 'high'},{'ab'[i == 0]}\n" for i in range(6)]
    table.write_text("speaker,height,hand\n" + "".join(lines))
    done = run("attack", voices, "-o", tmp_path / "out", "--attackers", "ignorant", *TINY,
               "--features", "voice", "--seconds", 4, "--attributes", "height,hand",
               "--groups", table)  # fmt: skip
    assert done.code == 0, done.err
    assert "Told of a reader: height" in done.out
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert any(note.startswith("b, relaxed, is not told: ") for note in found["notes"])
    high, low = (row for row in found["attributes"]["height"] if row["version"] == "relaxed")
    assert (high["value"], low["value"]) == ("high", "low")
    assert high["readers_with"] == high["readers_without"] == 3
    assert high["eer"] < 0.2  # a buzz is high or low
    assert "cannot resolve" in high["at"][1]["note"]
    page = (tmp_path / "out" / "index.html").read_text()
    assert "Told of a reader: height" in page
    assert "phone error" in page


@pytest.mark.slow
def test_again_it_goes_on_from_what_was_heard(run, voices, tmp_path):
    first = run("attack", voices, "-o", tmp_path / "out", *TINY)
    before = (tmp_path / "out" / "results.json").read_bytes()
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "out" / "kept").rglob("*.result")}
    again = run("attack", voices, "-o", tmp_path / "out", *TINY)
    assert (first.code, again.code) == (0, 0)
    assert first.out == again.out
    assert (tmp_path / "out" / "results.json").read_bytes() == before
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
    assert run("attack", voices, "-o", tmp_path / "out", *TINY, "--fresh").code == 0
    assert all(p.stat().st_mtime_ns > at for p, at in kept.items())


@pytest.mark.slow
def test_a_program_is_tested_like_any_method(run, voices, tmp_path):
    done = run("attack", voices, "-o", tmp_path / "out", "--anonymiser-command", "cat",
               "--attackers", "ignorant", *TINY)  # fmt: skip
    assert done.code == 0, done.err
    rows = json.loads((tmp_path / "out" / "results.json").read_text())["rows"]
    clear, same = (
        [r["figures"] for r in rows if r["method"] == method] for method in ("none", "command:cat")
    )
    assert clear == same  # 16 bits in, 16 bits out


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--method", "mcadam:0.8"), "no anonymiser is called 'mcadam'"),
        (("--method", "mcadams:9"), "McAdams coefficient of 9"),
        (("--attackers", "psychic"), "no attacker is called 'psychic'"),
        (("--template", 10), "--template 10 is no multiple of 6 s"),
        (("--anonymiser-command", "nosuchprogram"), "nosuchprogram cannot be started"),
        (("--segments", "1,x"), "give whole numbers such as 1,3,30"),
        (("--features", "f1"), "unknown feature 'f1'"),
        (("--attributes", "gender"), "attributes are told by an embedding: add voice"),
        (("--features", "voice", "--attributes", "gender"), "no table says the gender"),
        (("--groups", "people.csv"), "--groups goes with --attributes"),
        (("--features", "voice", "--attributes", "age", "--groups", "no.csv"), "no.csv does not"),
        (("--seconds", 500), "fewer than two readers have"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(run, voices, tmp_path, more, told):
    options = [*TINY]
    for name, value in zip(more[::2], more[1::2], strict=True):
        if name in options:
            options[options.index(name) + 1] = value
        else:
            options += [name, value]
    done = run("attack", voices, "-o", tmp_path / "out", *options)
    assert done.code in (1, 2)
    assert told in done.err
    assert len([line for line in done.err.splitlines() if "looking" not in line]) == 1
    assert not (tmp_path / "out").exists()


def test_a_corpus_of_nothing_leaves_no_folder_behind(run, tmp_path):
    (tmp_path / "empty").mkdir()
    assert run("attack", tmp_path / "empty", "-o", tmp_path / "out", *TINY).code == 1
    assert not (tmp_path / "out").exists()


def test_a_place_below_a_file_is_refused_before_anything_is_heard(run, voices, tmp_path):
    (tmp_path / "file").write_text("")
    done = run("attack", voices, "-o", tmp_path / "file" / "out", *TINY)
    assert done.code == 1
    assert "file is no folder" in done.err
    assert "looking" not in done.err


def test_a_folder_of_something_else_is_left_alone(run, voices, tmp_path):
    (tmp_path / "thesis.tex").write_text("dear")
    done = run("attack", voices, "-o", tmp_path, *TINY)
    assert done.code == 2
    assert "holds something else (thesis.tex)" in done.err
