from __future__ import annotations

import csv
import io
import json
import stat
from dataclasses import replace

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.lab.attacks.attributes import AttributeRow, judge_attribute
from monitor.lab.attacks.results import (
    FILES,
    AttackResults,
    build_report,
    check_folder,
    results_csv,
    results_json,
    tabulate_enrolment,
    tabulate_main,
    tabulate_measures,
    write_results,
)
from monitor.lab.report.html import render_html
from monitor.lab.report.model import Figure, Table, format_cell
from tests.lab.attacks.made import METHODS, results, row


def cells(table: Table) -> list[list[str]]:
    return [[format_cell(cell) for cell in row] for row in table.rows]


def head(table: Table) -> list[str]:
    return [column.title for column in table.columns]


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


def test_json_holds_all_that_is_shown():
    made = json.loads(results_json(results()))
    assert made["headline"][0].startswith("mcadams:0.8: 3.10 bits")
    assert made["settings"]["methods"] == list(METHODS)
    assert made["rows"][0]["figures"]["srd.mean_bits_model"]["high"] == 4.0
    assert made["notes"]


def test_the_enrolments_are_laid_out_as_voxguard_does():
    table = tabulate_enrolment(results())
    assert head(table) == ["method", "attacker", "feature", "scoring", "L = 1", "L = 3"]
    assert cells(table) == [
        ["mcadams:0.8", "lazy-informed", "voice", "average", "25.0 | inf | 40.0 | -", "-"],
        # one segment is its own mean, and the nearest
        ["mcadams:0.8", "lazy-informed", "voice", "max", "25.0 | inf | 40.0 | -",
         "25.0 | inf | 40.0 | -"],
    ]  # fmt: skip


def test_the_main_table_has_the_template_that_everybody_has():
    lines = cells(tabulate_main(results()))
    assert [(line[0], line[1]) for line in lines] == [
        ("none", "ignorant"), ("mcadams:0.8", "ignorant"), ("mcadams:0.8", "lazy-informed"),
        ("`mine --strong`", "lazy-informed"),
    ]  # fmt: skip
    assert lines[0][3] == "3.500\n3.000 to 4.000"


def test_use_stands_beside_the_strongest_attackers_bits():
    found = results()
    error = Figure("utility.phone_error", "phone error", 0.5, "share", low=0.4, high=0.6)
    table = tabulate_measures(replace(found, measured={"mcadams:0.8": [error]}))
    assert head(table) == ["method", "bits, strongest attacker", "phone error"]
    lines = cells(table)
    assert lines[1] == ["mcadams:0.8", "3.100\n2.600 to 3.600", "50.0 %\n40.0 to 60.0 %"]
    assert lines[0][-1] == "-"
    assert tabulate_measures(found).rows == []


def test_no_column_of_the_page_is_cut_off_on_a_narrow_screen_or_paper():
    found = results()
    error = Figure("utility.phone_error", "phone error", 0.5, "share", low=0.4, high=0.6)
    text = render_page(replace(found, measured={"mcadams:0.8": [error]}))
    assert text.count('<table class="wide">') == text.count("<table") == 3
    for name in ("phone error", *head(tabulate_main(found))[3:], "L = 3"):
        assert f'data-name="{name}"' in text  # each number says in its block what it is


def test_the_page_begins_with_the_worst_and_escapes_what_it_is_given():
    strange = "command:<script>alert(1)</script>"
    text = render_page(results([row("none", "ignorant", 1.0), row(strange, "ignorant", 2.0)],
                        methods=("none", strange)))  # fmt: skip
    assert "<script" not in text
    assert text.index("2.00 bits") < text.index("Unprotected")
    assert "knows of no protection" in text


def test_attributes_are_a_table_of_the_page():
    has = {f"r{i}": i < 8 for i in range(17)}
    judgement = judge_attribute(np.arange(17.0), list(has), has, replicates=20)
    told = AttributeRow("none", "ignorant", "voice", "F", "relaxed", False, 5.0, 5, 6, judgement)
    assert AttributeRow.decode(json.loads(json.dumps(told.encode()))) == told
    found = results()
    text = render_page(replace(found, attributes={"gender": [told]}))
    assert "Told of a reader: gender" in text
    assert "TPR at FPR 1e-2" in text
    assert "8 / 9" in text


@pytest.mark.slow
def test_files_are_private_and_the_same_for_the_same_results(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_results(results(), tmp_path / name)
    for name in FILES:
        one, other = (tmp_path / folder / name for folder in "ab")
        assert one.read_bytes() == other.read_bytes()
        assert stat.S_IMODE(one.stat().st_mode) == 0o600
    check_folder(tmp_path / "a")  # goes on from there


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(UsageError, match="name a folder"):
        check_folder(tmp_path / "a")
