"""The table of voice changers: what ships, one's own rows, and files that are none."""

from __future__ import annotations

import json
import math
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from monitor.errors import StoreError, UsageError
from monitor.lab.attacks.scoreboard import Scoreboard, ScoreRow, describe_comparison, format_delay
from monitor.lab.report.model import format_cell
from tests.lab.attacks.made import results
from tests.lab.attacks.made import row as made_row


@pytest.fixture
def mine() -> ScoreRow:
    """A method that withholds nearly everything."""
    bits = {"ignorant": (0.1, 0.0, 0.4), "lazy-informed": (0.2, 0.1, 0.6)}
    return ScoreRow("mine", "my-anonymiser", "voices", 8, 40, bits, phone_error=(0.5, 0.4, 0.6))


def test_what_ships_is_worth_a_comparison():
    board = Scoreboard.shipped()
    clear = next(row for row in board.rows if row.how == "nothing")
    assert clear.strongest > 0.7 * math.log2(clear.speakers)
    for row in board.rows:
        assert row.corpus == "dev-clean"
        assert 0 <= row.strongest <= math.log2(row.speakers)
        for value, low, high in row.bits.values():
            assert low is not None
            assert high is not None
            assert low <= value <= high
        assert row is clear or "lazy-informed" in row.bits
    assert any(row.how.startswith("sox") for row in board.rows)


def test_own_rows_stand_among_the_others_and_survive_a_file(mine, tmp_path: Path):
    board = Scoreboard.shipped().beside([mine])
    assert board.ranked[0] == mine
    assert "yours are of voices, other people" in describe_comparison(board, [mine])
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


def test_the_strongest_attacker_stands_first_and_training_beside_its_figure(mine):
    weaker = {**mine.bits, "semi-informed": (0.15, 0.0, 0.5)}
    row = replace(mine, bits=weaker, clear_share=0.97)
    table = Scoreboard((row,)).table()
    head, (line,) = [column.title for column in table.columns], table.rows
    cells = dict(zip(head, map(format_cell, line), strict=True))
    assert head[1] == "bits, strongest"
    assert cells["bits, strongest"].startswith("0.20\n")
    assert "lazy-informed" in cells["bits, strongest"]
    assert "97 %" in cells["bits, semi-informed"]
    assert "undertrained" not in cells["bits, semi-informed"]
    poor = replace(row, clear_share=0.6, undertrained=True)
    assert "undertrained, 60 %" in Scoreboard((poor,)).markdown()
    assert "shipped network" in Scoreboard((replace(mine, bits=weaker, kept_shipped=True),)).page()


def test_training_is_read_off_an_attack():
    method, attackers = "mcadams:0.8", ("ignorant", "semi-informed")
    rows = [made_row(method, "semi-informed", 2.0), made_row("none", "ignorant", 3.5)]
    own = replace(results(rows, attackers=attackers), clear_bits={method: (3.0, 4.0)})
    row = ScoreRow.of(own, method)
    assert row.clear_share == pytest.approx(0.75)
    assert row.undertrained
    assert ScoreRow.of(replace(own, clear_bits={}), method).kept_shipped
    assert not ScoreRow.of(own, "none").kept_shipped


def test_a_delay_is_that_of_the_strongest_attacker(mine):
    assert format_delay(mine) == "-"
    assert format_delay(replace(mine, seconds={"ignorant": None}, heard=40.0)) == "> 40 s"
    assert format_delay(replace(mine, seconds={"ignorant": None, "lazy-informed": 9.0})) == "9 s"


def test_what_is_no_table_is_said_to_be_none(mine, tmp_path: Path):
    with pytest.raises(UsageError, match=r"must end in \.html, \.json, \.md"):
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
        with pytest.raises(StoreError, match=r"table\.json is no scoreboard"):
            Scoreboard.read(path)
    path.write_text(json.dumps({**whole, "schema": 2}))
    with pytest.raises(StoreError, match="another version"):
        Scoreboard.read(path)
