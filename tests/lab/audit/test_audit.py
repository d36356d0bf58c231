"""The document of an audit: what stands in it, and what never does."""

import csv
import io
import json
import re
import stat
from dataclasses import replace
from html import unescape
from typing import Any

import numpy as np
import pytest

from monitor import Monitor, Population
from monitor.corpus import find
from monitor.errors import SchemaError, StoreError, UsageError
from monitor.lab.attacks.attackers import BITS
from monitor.lab.attacks.results import read_results, results_json
from monitor.lab.attacks.speech import CLEAR
from monitor.lab.audit.audit import Audit, AuditConfig, hash_speaker, summarise
from monitor.lab.audit.auditing import audit_attack, audit_runs, extract_corpus
from monitor.lab.audit.document import (
    audit_csv,
    audit_json,
    audit_page,
    label_json,
    label_markdown,
    make_document,
    make_label,
    save_audit,
)
from monitor.lab.audit.exposure import Exposures, summarise_lengths
from monitor.lab.report.model import Picture, Section, Tiles
from tests.lab.attacks.made import results
from tests.lab.reading import read_alone
from tests.records import event


def text_of(page):
    return unescape(re.sub(r"<[^>]+>", " ", page)).replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.slow
def test_three_figures_and_the_curve_come_first_and_the_rest_is_folded(audit):
    tiles, curve, *rest = make_document(audit).sections
    assert isinstance(tiles, Tiles)
    assert len(tiles.tiles) == 3
    assert f"{audit.headline.bits:.1f} bits" in tiles.tiles[0].value
    assert isinstance(curve, Picture)
    assert all(isinstance(section, Section) and section.folded for section in rest)
    page = audit_page(audit)
    assert page.index('class="value"') < page.index("<svg") < page.index("<details")
    assert page.count("<details") == len(rest)


def test_the_figures_of_an_attack_are_of_what_it_attacked():
    audit = audit_attack(results(), AuditConfig())
    (tiles, *_) = make_document(audit).sections
    assert isinstance(tiles, Tiles)
    bits = max(test.bits for test in audit.tests if test.method != CLEAR)
    assert isinstance(tiles, Tiles)
    assert len(tiles.tiles) == 3
    assert tiles.tiles[0].value.startswith(f"{bits:.1f} of")


@pytest.mark.slow
def test_the_document_stands_by_itself_and_its_numbers_are_those_of_json(audit, tmp_path):
    path = tmp_path / "audit.html"
    beside = save_audit(audit, path)
    for file in (path, *beside):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    page = path.read_text()
    read_alone(page)
    made = json.loads(beside[1].read_text())
    assert {row["seconds"] for row in made["lengths"]} == {1.0, 3.0, 10.0}
    assert {each["session"] for each in made["tests"]} == {"same", "cross"}
    shown = text_of(page)
    for row in made["lengths"]:
        assert f"{row['mean_bits']['value']:.1f}" in shown
    for lines in made["summary"].values():
        assert lines
        assert all(line in shown for line in lines)
    table = list(csv.DictReader(io.StringIO(beside[0].read_text())))
    means = [float(each["value"]) for each in table if each["figure"] == "bits.mean"]
    assert means == [row["mean_bits"]["value"] for row in made["lengths"]]
    eer = {
        (e["session"], float(e["value"])) for e in table if e["figure"] == "verification.eer_rocch"
    }
    assert eer == {(t["session"], t["figures"]["verification.eer_rocch"]["value"])
                   for t in made["tests"]}  # fmt: skip


@pytest.mark.slow
def test_nobody_is_named_nothing_is_called_anonymous_and_what_was_not_tested_is_said(audit, heard):
    page = text_of(audit_page(audit))
    written = page + label_markdown(make_label(audit)) + json.dumps(audit_json(audit))
    for voice in heard.voices:
        assert voice.name not in written
        assert hash_speaker(voice.name) in written
    assert hash_speaker(heard.voices[0].name, "salt") in audit_page(audit, "salt")
    said = [line for lines in summarise(audit).values() for line in lines]
    assert not any("anonym" in line.lower() for line in said)
    assert "no verdict on anonymity" in page
    for source in ("WP216", "recital 26", "C-582/14", "C-413/23 P"):
        assert source in page
    missing = " ".join(audit.not_tested)
    assert "Recognition by phones and " in missing  # which were not heard, and tell more
    assert "Inference" in missing  # pitch has no embedding to tell an attribute by
    assert "Protected speech" in missing
    (inference,) = summarise(audit)["inference"]
    assert "not tested" in inference
    # N of evidence, of ranks across sessions and within one are not the same
    people = audit.facts["Population"]
    assert f"evidence has N = {audit.exposures.candidates}" in people
    for test in audit.tests:
        where = "across sessions" if test.session == "cross" else "within one"
        assert f"N = {test.speakers} {where}, {test.tested} tested" in people


@pytest.mark.slow
def test_the_label_has_what_the_audit_has_and_says_where_calibration_ends(audit):
    label: Any = make_label(audit, "s")
    made, card = label_json(label), label_markdown(label)
    assert made["lengths"] == audit_json(audit)["lengths"]
    assert [each for each in made["uniqueness"] if each["first"] is not None]
    assert label.uniqueness.session == "cross"
    for each in made["uniqueness"]:
        if each["people"] == 1_000_000:
            assert f"| a million | {100 * each['low']:.1f} %" in card
    assert f"{audit.headline.mean_bits.value:.1f} bits" in card
    assert f"Up to the {label.uniqueness.speakers} enrolled it is measured" in card
    with pytest.raises(UsageError, match="a label needs a corpus"):
        make_label(audit_attack(results()))
    row = audit.headline
    rows = [replace(each, most_at_least=True) if each is row else each for each in audit.rows]
    capped = replace(audit, rows=tuple(rows))
    most = f"\N{GREATER-THAN OR EQUAL TO} {row.most_bits:.1f}"
    assert f"{most} |" in label_markdown(make_label(capped))
    assert f"{most} |" not in card or row.most_at_least
    assert most in text_of(audit_page(capped))


@pytest.mark.slow
def test_how_unique_a_voice_is_is_not_told_by_the_few_who_say_most(audit):
    whole: Any = make_label(audit).uniqueness
    bits = {**whole.figures, BITS: replace(whole.figures[BITS], value=99.0)}
    few = replace(whole, tested=whole.tested // 3, seconds=120.0, figures=bits)
    assert make_label(replace(audit, tests=(*audit.tests, few))).uniqueness == whole


def test_the_mean_and_its_upper_limit_are_told_apart():
    def said(mean, high):
        found = Exposures(
            ("a", "b"), np.array([0, 1]), np.full(2, 3.0), np.full(2, mean), np.full(2, mean),
            np.full(2, high), np.zeros(2, bool), np.ones(2, bool), "evidence", 20, "cross",
        )  # fmt: skip
        rows = summarise_lengths(found, 6.0)
        (row,) = (replace(row, mean_bits=replace(row.mean_bits, high=high)) for row in rows)
        made = Audit("x", "corpus", {}, AuditConfig(), exposures=found, rows=(row,))
        return summarise(made)["retention"]

    assert any(line.startswith("The mean reaches 6 bits") for line in said(7.0, 8.0))
    below = said(5.0, 6.5)
    assert any(line.startswith("The upper limit of the mean reaches 6 bits") for line in below)
    assert not any("reaches" in line for line in said(5.0, 5.5))


def callers(*parts) -> Any:
    """Sixteen callers, of whom fewer speak longer: T, whose stretches, and their bits."""
    each = [(owner, t, bits) for t, owners, bits in parts for owner in owners]
    owner, seconds, bits = map(np.array, zip(*each, strict=True))
    found = Exposures(
        tuple(f"s{i}" for i in range(16)), owner, seconds, bits + 0.5 * (owner % 3), bits - 1,
        bits + 1, np.zeros(owner.size, bool), np.ones(owner.size, bool), "evidence", 13, "cross",
    )  # fmt: skip
    rows = summarise_lengths(found, 6.0, replicates=20)
    return Audit("calls", "corpus", {}, AuditConfig(replicates=20), found, rows)


@pytest.mark.parametrize(
    ("bits", "seconds"), [((0.3, 0.1, -0.8), 60.0), ((2.0, 1.5, 1.0), 3.0), ((0.7, 0.6, 1.2), 60.0)]
)
def test_a_weak_attacker_is_not_headlined_by_one_second(bits, seconds):
    lengths = zip((1.0, 3.0, 60.0), bits, strict=True)
    audit = callers(*((length, [*range(12)], value - 0.5) for length, value in lengths))
    assert audit.headline.seconds == seconds


def test_a_report_begins_with_the_length_at_which_most_people_disclose_most():
    """A minute was said once, by one caller, whose stretch speaks against him."""
    audit = callers(
        (3.0, [*range(13)] * 8, 3.0), (10.0, [*range(12)] * 3, 2.0), (30.0, [*range(6)], 9.0),
        (60.0, [0], -5.5),
    )  # fmt: skip
    assert audit.headline.seconds == 3.0
    first = summarise(audit)["singling out"][0]
    assert first.startswith("104 stretches of 3 seconds by 13 people disclose on average 3.")
    shown = audit_json(audit)
    assert [row["seconds"] for row in shown["lengths"]] == [3.0, 10.0, 30.0]
    assert shown["headline_seconds"] == 3.0
    assert shown["most_revealing"] == {"seconds": 3.0, "bits": audit.shown[0].most_bits}
    assert f"{audit.shown[0].most_bits:.1f} bits" in summarise(audit)["singling out"][-1]
    # what anybody disclosed still counts for how long speech may be kept
    assert (audit.retention.under, audit.retention.reached) == (10.0, 30.0)
    assert audit.retention.on_average == 30.0
    page = text_of(audit_page(audit))
    assert "-5.5" not in page
    assert "-5.5" not in audit_csv(audit)
    once = callers((3.0, range(13), 3.0), (60.0, [0], -5.5)).retention
    assert (once.under, once.reached) == (3.0, None)  # that one caller kept a minute is no comfort
    fewer = callers((3.0, [*range(6)] * 4, 3.0))
    assert "Only 6 people were tested at that length" in summarise(fewer)["singling out"][1]
    none = callers((3.0, [*range(4)] * 4, 3.0))
    assert summarise(none)["singling out"] == [
        "Evidence is not reported: fewer than 5 people reach any length."
    ]
    assert summarise(none)["retention"] == [
        "Not reported, because fewer than 5 people reach any length."
    ]
    assert none.retention.on_average is None


def test_lengths_are_compared_by_the_same_people():
    """The three who say most are the only ones who speak short: the curve does not fall for it."""
    audit = callers((3.0, [*range(13)], 2.0), (3.0, [13, 14, 15] * 9, 9.0), (30.0, range(12), 3.0))
    everybody = [row.mean_bits.value for row in audit.shown]
    assert everybody[0] > everybody[1]
    same = audit.same_people
    assert [row.seconds for row in same] == [3.0, 30.0]
    assert {row.speakers for row in same} == {12}
    assert [row.mean_bits.value for row in same] == pytest.approx([2.5, 3.5])
    made = audit_json(audit)["same_people"]
    assert made["people"] == 12
    assert [each["mean_bits"]["value"] for each in made["lengths"]] == pytest.approx([2.5, 3.5])
    assert "The same 12 people at each length" in text_of(audit_page(audit))


def test_a_budget_that_no_evidence_exceeds_is_refused_before_audio_is_read(crowd):
    def read(recording):
        raise AssertionError(f"{recording} was read")

    most = Monitor(Population.reference(), ["f0"], "4406").attacker.support_bits
    assert most is not None
    config = AuditConfig(budget=most + 0.1, features=("f0",))
    with pytest.raises(UsageError, match=r"budget .*calibration supports at most \d"):
        extract_corpus(find(crowd), crowd, config, read)
    start = {"type": "start", "watch": "ann", "headline": "evidence", "support_bits": 9.0}
    with pytest.raises(UsageError, match=r"at most 9\.00 bits"):
        audit_runs([("a", [event(start)])], AuditConfig(budget=9.5))
    with pytest.raises(StoreError, match="no run has a reading"):  # it is within reach
        audit_runs([("a", [event(start)])], AuditConfig(budget=9.0))


def test_an_attack_is_audited_by_its_strongest_attacker():
    found = audit_attack(results())
    said = summarise(found)
    assert all(said.values())
    assert "mcadams:0.8: 6 bits for 10 s cannot be tested" in said["retention"][1]
    assert "3.1 bits (2.6 to 3.6)" in said["retention"][1]  # of its strongest way
    assert "mine --strong: 10 s disclose 0.1 bits" in said["singling out"][2]
    low = summarise(audit_attack(results(), AuditConfig(budget=3.0)))["retention"]
    assert "may exceed 3 bits" in low[1]
    assert "stay under 3 bits" in low[2]
    page = text_of(audit_page(found))
    assert "25.0 %" in page
    assert "/opt/anonymisers" not in page
    assert "`" not in page  # marks of Markdown
    for shown, explained in (("TPR at FPR 1 %", "TPR at FPR 1 %: "), ("epsilon", "Epsilon: ")):
        assert shown in page
        assert explained in page
    assert {"30 s", "18 s"} <= set(re.findall(r"\d+ s", page))  # the templates of each row


def test_results_are_read_back_as_they_were_written(tmp_path):
    made = results()
    path = tmp_path / "results.json"
    path.write_text(results_json(made))
    found = read_results(tmp_path)
    assert json.loads(results_json(found))["rows"] == json.loads(results_json(made))["rows"]
    assert found.settings == made.settings
    assert [r.bits for r in found.ranking()] == [r.bits for r in made.ranking()]


@pytest.mark.parametrize(
    ("change", "error", "what"),
    [
        (lambda _: "[", StoreError, "has no results of monitor attack"),
        (lambda d: json.dumps(d | {"schema": 99}), SchemaError, "newer version"),
        (lambda d: json.dumps(d | {"rows": []}), StoreError, "is damaged"),
        (lambda d: json.dumps(d | {"settings": {}}), StoreError, "is damaged"),
    ],
)
def test_damaged_results_are_refused_in_a_line(tmp_path, change, error, what):
    path = tmp_path / "results.json"
    path.write_text(change(json.loads(results_json(results()))))
    with pytest.raises(error, match=what):
        read_results(path)
    with pytest.raises(StoreError, match="cannot open"):
        read_results(tmp_path / "nothing.json")


def test_names_from_elsewhere_cannot_be_markup(audit):
    mean = replace(audit, name="<b>|x`", notes=("a | b <script>",))
    assert "<b>|x" not in audit_page(mean)
    assert "<script>" not in audit_page(mean)
    card = label_markdown(make_label(mean))
    assert "\\<b\\>\\|x\\`" in card
    assert "<script>" not in card
