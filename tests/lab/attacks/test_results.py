"""What is said and written of attacks, and the table of voice changers."""

from __future__ import annotations

import csv
import io
import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from monitor.errors import StoreError, UsageError
from monitor.lab.attacks.report import FILES, build_report, check_folder, write_results
from monitor.lab.attacks.results import (
    AttackResults,
    format_headline,
    list_caveats,
    results_csv,
    results_json,
)
from monitor.lab.attacks.scoreboard import Scoreboard, ScoreRow, describe_comparison
from monitor.lab.evaluation.srd import figures
from monitor.lab.report.renderers import render_html
from tests.lab.attacks.made import METHODS, results, row
from tests.lab.evaluation.matrices import ranked_second
from tests.lab.reading import read_alone


def test_the_headline_is_the_strongest_attackers_worst_method_first():
    lines = format_headline(results())
    assert lines == [
        "mcadams:0.8: 3.10 bits (2.60 to 3.60) of 4.00 to the strongest attacker tried "
        "(lazy-informed, voice, 3 segments enrolled, max scoring).",
        "`mine --strong`: 0.05 bits (-0.45 to 0.55) of 4.00 to the strongest attacker tried "
        "(lazy-informed, voice, 5 segments enrolled). This shows nothing: chance gets up to 0.10 "
        "bits.",
        "Unprotected: 3.50 bits (3.00 to 4.00) (ignorant, voice, 5 segments enrolled).",
    ]
    # an attacker who does not know the anonymiser measures nothing but clear speech
    *protected, clear = format_headline(results(attackers=("ignorant",)))
    for line in protected:
        assert "no measure of protection" in line
        assert "strongest" not in line
    assert "no measure" not in clear
    (line,) = format_headline(results([row("none", "ignorant", 3.5)], methods=("none",)))
    assert line.startswith("none: 3.50 bits")


def test_what_stands_at_the_ceiling_is_said_to():
    few = [row("none", "ignorant", 2.0), row("mcadams:0.8", "ignorant", 1.5),
           row("whisper", "ignorant", 1.95)]  # fmt: skip
    few = [replace(each, speakers=4) for each in few]
    last = format_headline(results(few, methods=("none", "mcadams:0.8", "whisper")))[-1]
    assert last.startswith("At the ceiling: unprotected speech, whisper. 4 readers")
    assert "2.00 bits" in last
    assert last.endswith("Test with ten readers or more.")
    (_, last) = format_headline(results([row("none", "ignorant", 3.9)], methods=("none",)))
    assert last.endswith("Test with more readers.")  # of 16
    assert not any("ceiling" in line for line in format_headline(results()))


@pytest.mark.parametrize(
    ("changes", "more", "told"),
    [
        ({}, {"session": "same"}, "parts of one session"),
        ({}, {}, "Not tried: aligned, simulating, semi-informed"),
        ({"rank_model": "shipped, of clear speech"}, {}, "weights from the shipped rank model"),
        ({}, {}, "With 16 readers, differences within the intervals are not significant"),
    ],
)
def test_what_a_reader_has_to_know_is_said_and_nothing_that_is_not_so(changes, more, told):
    rows = [row("none", "ignorant", 3.0, **changes)] if changes else []
    assert any(told in line for line in list_caveats(results(rows, **more)))
    if changes or more:
        every = ("ignorant", "lazy-informed", "semi-informed")
        assert told not in " ".join(list_caveats(results(attackers=every)))


def test_bits_that_are_too_low_are_said_to_be():
    matrix = ranked_second(0.5)
    found = {figure.key: figure for figure in figures(matrix, permutations=40)}
    low = replace(row("mcadams:0.8", "ignorant", 0.3), figures=found)
    told = "mcadams:0.8, ignorant, voice, 5 segments enrolled: 0.36 bits are too low"
    (line,) = [line for line in list_caveats(results([low])) if "too low" in line]
    assert line.startswith(told)
    assert line.endswith(" bits.")
    assert "too low" not in " ".join(list_caveats(results()))


def test_an_attacker_who_does_not_even_know_clear_voices_is_undertrained():
    method, attackers = "mcadams:0.8", ("ignorant", "semi-informed")
    rows = [row(method, "semi-informed", 2.0), row("none", "ignorant", 3.5)]
    clear = {method: (2.0, 3.5), METHODS[2]: (3.4, 3.5)}
    found = replace(results(rows, attackers=attackers), clear_bits=clear)
    assert found.undertrained == (method,)
    (told,) = [line for line in list_caveats(found) if "undertrained" in line]
    assert "2.00 bits" in told
    assert "shipped one 3.50" in told
    on_board = ScoreRow.from_results(found, method)
    assert on_board.clear_share == pytest.approx(2.0 / 3.5)
    assert on_board.undertrained
    assert ScoreRow.from_results(replace(found, clear_bits={}), method).kept_shipped
    assert not ScoreRow.from_results(found, "none").kept_shipped


@pytest.mark.parametrize(("informed", "is_flagged"), [(1.0, True), (1.9, False), (3.0, False)])
def test_an_informed_attacker_who_learns_less_than_an_ignorant_one_is_flagged(informed, is_flagged):
    rows = [row("none", "ignorant", 3.5), row("mcadams:0.8", "ignorant", 2.0),
            row("mcadams:0.8", "lazy-informed", informed)]  # fmt: skip
    flags = [line for line in list_caveats(results(rows)) if "badly trained" in line]
    assert len(flags) == is_flagged
    assert all("2.00" in line and "1.00" in line for line in flags)


def render_page(found: AttackResults) -> str:
    return render_html(build_report(found))


def test_every_row_is_a_line_and_says_what_is_infinite():
    lines = list(csv.DictReader(io.StringIO(results_csv(results()))))
    assert len(lines) == 6
    first = lines[0]
    assert (first["method"], first["attacker"], first["speakers"], first["trials"]) == (
        "none", "ignorant", "16", "64",
    )  # fmt: skip
    assert first["srd.mean_bits_model"] == "3.5"
    assert first["srd.mean_bits_model.low"] == "3.0"
    assert first["membership.epsilon_nats_at_1e-2"] == "inf"
    assert first["lid.alid_bits"] == ""  # was not made
    made = json.loads(results_json(results()))
    assert made["headline"][0].startswith("mcadams:0.8: 3.10 bits")
    assert made["settings"]["methods"] == list(METHODS)
    assert made["rows"][0]["figures"]["srd.mean_bits_model"]["high"] == 4.0
    assert made["notes"]


def test_the_page_begins_with_the_worst_and_escapes_what_it_is_given():
    strange = "command:<script>alert(1)</script>"
    text = render_page(results([row("none", "ignorant", 1.0), row(strange, "ignorant", 2.0)],
                        methods=("none", strange)))  # fmt: skip
    read_alone(text)
    assert text.index("2.00 bits") < text.index("Unprotected")
    assert "does not know of the protection" in text


def test_files_are_private_and_the_same_for_the_same_results(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_results(results(), tmp_path / name)
    for name in FILES:
        one, other = (tmp_path / folder / name for folder in "ab")
        assert one.read_bytes() == other.read_bytes()
        assert stat.S_IMODE(one.stat().st_mode) == 0o600
    check_folder(tmp_path / "a")  # goes on from there
    with pytest.raises(UsageError, match=FILES[0]):
        check_folder(tmp_path / "a" / FILES[0])


@pytest.fixture
def mine() -> ScoreRow:
    """A method that withholds nearly everything."""
    bits = {"ignorant": (0.1, 0.0, 0.4), "lazy-informed": (0.2, 0.1, 0.6)}
    return ScoreRow("mine", "my-anonymiser", "voices", 8, 40, bits, phone_error=(0.5, 0.4, 0.6))


def test_own_rows_stand_among_the_others_and_survive_a_file(mine, tmp_path: Path):
    board = Scoreboard.shipped().beside([mine])
    assert board.ranked[0] == mine
    assert "other people (voices), so not comparable" in describe_comparison(board, [mine])
    path = tmp_path / "table.json"
    board.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Scoreboard.read(path) == board
    better = replace(mine, bits={"ignorant": (0.0, 0.0, 0.1)})
    again = Scoreboard.read(path).beside([better])
    assert [row for row in again.rows if row.name == "mine"] == [better]
    board.save(tmp_path / "table.md")
    lines = (tmp_path / "table.md").read_text().splitlines()
    assert lines[2].startswith(
        "| mine | 0.20 [0.10, 0.60], lazy-informed | 0.10 [0.00, 0.40] | 0.20 [0.10, 0.60] |"
    )
    assert len(lines) == 2 + len(board.rows)
    board.save(tmp_path / "table.html")
    page = (tmp_path / "table.html").read_text()
    assert page.count("my-anonymiser") == 1
    assert "<script" not in page
    # the answer comes before the picture, by the strongest attacker of each method
    assert page.index("mine leaves 0.2 of 3.0 bits, the least. 12 of 14") < page.index("<svg")


def test_a_picture_and_a_table_have_the_strongest_attacker(mine):
    bits = {**mine.bits, "aligned": (2.0, 1.5, 2.5), "simulating": (0.3, 0.2, 0.4)}
    board = Scoreboard((replace(mine, bits=bits),))
    assert board.attackers == ("ignorant", "aligned", "lazy-informed", "simulating")
    (method,), attackers, _ = board.pictured()
    assert dict(zip(attackers, method.bits, strict=True)) == bits
    assert "bits, aligned" in board.markdown()


def test_what_is_no_table_is_said_to_be_none(mine, tmp_path: Path):
    with pytest.raises(UsageError, match=r"table\.csv: use \.html, \.json, \.md"):
        Scoreboard((mine,)).save(tmp_path / "table.csv")
    path = tmp_path / "table.json"
    whole = json.loads(Scoreboard((mine,)).json())
    wrong = [
        {},
        {**whole, "rows": [{"name": "x"}]},
        {**whole, "rows": [{**whole["rows"][0], "bits": {}}]},
    ]
    for each in (*map(json.dumps, wrong), "no json", "[]"):
        path.write_text(each)
        with pytest.raises(StoreError, match=r"invalid scoreboard table\.json"):
            Scoreboard.read(path)
    path.write_text(json.dumps({**whole, "schema": 2}))
    with pytest.raises(StoreError, match="another version"):
        Scoreboard.read(path)
