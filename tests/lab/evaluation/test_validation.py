"""Forensic validation: the measures of a system, how it is calibrated, and its document."""

import csv
import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import Comparisons, ScoreMatrix
from monitor.lab.evaluation.input.groups import Attribute, read_conditions
from monitor.lab.evaluation.validation import (
    MEASURES,
    Criterion,
    ValidationStatement,
    _cross_calibrate,
    validate,
)
from monitor.lab.evaluation.validation_document import (
    curves,
    save_validation,
    validation_csv,
    validation_json,
    validation_page,
)
from monitor.lab.evaluation.verbal import TERMS, degrees_of_support, describe_degree
from monitor.lab.evaluation.verification import cllr, min_cllr
from monitor.lab.report.model import format_value
from monitor.lab.report.renderers import render_html
from tests.lab.evaluation.made import EVIL
from tests.lab.evaluation.matrices import separated
from tests.lab.reading import Reader, read_alone


def matrix(seed=0, speakers=24, trials=6, lead=4.0, name="made"):
    """Calibrated log-likelihood ratios in nats: half the distance of the means is the variance."""
    rng = np.random.default_rng(seed)
    target = np.repeat(np.arange(speakers), trials)
    own = target[:, None] == np.arange(speakers)
    nats = np.where(own, lead, -lead) + np.sqrt(2 * lead) * rng.standard_normal(own.shape)
    names = tuple(f"s{seed}-{i}" for i in range(speakers))
    heard = tuple(f"t{i}" for i in range(target.size))
    return ScoreMatrix(nats, target, names, name, heard)


def parts_of(scores):
    own = np.zeros(scores.scores.shape, bool)
    own[np.arange(scores.trials), scores.target] = True
    return scores.scores[own], scores.scores[~own]


@pytest.mark.parametrize(("base", "nats"), [("e", 1.0), ("2", np.log(2)), ("10", np.log(10))])
def test_ratios_are_taken_as_they_are_whatever_their_base(base, nats):
    scores = matrix()
    found = validated(replace(scores, scores=scores.scores / nats), llr=base).total
    own, others = parts_of(scores)
    assert found["cllr"] == pytest.approx(cllr(own, others))
    assert found["min_cllr"] == pytest.approx(min_cllr(own, others))
    assert found["cllr_cal"] == pytest.approx(cllr(own, others) - min_cllr(own, others))
    assert found["misleading_same"] == pytest.approx((own < 0).mean())
    assert found["misleading_different"] == pytest.approx((others > 0).mean())
    assert found["devpav"] < 0.6
    assert found["elub_low"] < 0 < found["elub_people"] <= found["elub_high"] + 0.01
    assert (found.same, found.different, found.speakers) == (144, 144 * 23, 24)
    assert found.pairs == 24 * 23 / 2
    assert found.figures["cllr"].limits == (None, None)  # nothing was resampled
    limited = validated(scores, llr="e", replicates=50).total.figures
    for key in ("cllr", "min_cllr", "eer"):
        assert limited[key].low <= limited[key].value <= limited[key].high


def validated(scores, dev=None, **how) -> Any:
    """Without resamples, unless they are asked for."""
    return validate(scores, dev, **{"replicates": 0} | how)


@pytest.mark.parametrize("dev", [None, matrix(5)])
def test_any_rising_line_through_the_ratios_is_calibrated_away(dev):
    def bent(by, add):
        return (each and replace(each, scores=by * each.scores + add) for each in (matrix(), dev))

    found, again = validated(*bent(0.1, 3.0)), validated(*bent(0.7, 19.0))
    raw = validated(matrix(), llr="e")
    assert found.total["cllr"] == pytest.approx(raw.total["cllr"], abs=0.02)
    assert found.total["cllr_cal"] < 0.06
    assert validated(next(bent(0.1, 3.0)), llr="e").total["cllr_cal"] > 0.3
    for key in MEASURES:
        assert again.total[key] == pytest.approx(found.total[key], abs=1e-6), key


def test_nobody_calibrates_a_comparison_of_theirs():
    """Whatever somebody's comparisons are, those among the others' folds keep their ratios."""
    scores = matrix(speakers=16)
    changed = scores.scores.copy()
    mine = np.flatnonzero(scores.target == 3)
    changed[mine] += 9.0
    changed[:, 3] -= 5.0
    one, two = _ratios_of(scores), _ratios_of(replace(scores, scores=changed))
    # columns and rows of the speaker: a fit that has not seen them
    slope = np.polyfit(scores.scores[mine, 5], one[mine, 5], 1)
    assert two[mine, 5] == pytest.approx(np.polyval(slope, changed[mine, 5]), abs=1e-9)
    others = np.flatnonzero(scores.target == 7)
    assert not np.allclose(one[others, 8], two[others, 8])
    with pytest.raises(UsageError, match="too few to calibrate on some and test on others"):
        validated(matrix(speakers=3))
    assert validated(matrix(speakers=3), llr="e").total.speakers == 3


def _ratios_of(scores):
    listed = Comparisons.all_of(scores).listed()
    return _cross_calibrate(listed, "a", np.asarray(listed.scores))[0].reshape(scores.scores.shape)


def test_conditions_and_groups_are_measured_by_themselves():
    scores = matrix()
    noisy = {f"t{i}": "noisy" for i in range(0, 144, 2)}
    condition = Attribute("conditions.csv", "line", noisy | {"t1": "alone", "t3": "clean"})
    halves = Attribute("g", "half", {name: "ab"[i % 2] for i, name in enumerate(scores.speakers)})
    found = validated(scores, llr="e", conditions=[condition], groups=halves)
    assert [(p.name, p.same, p.different) for p in found.parts["half"]] == [
        ("a", 72, 72 * 11), ("b", 72, 72 * 11)
    ]  # fmt: skip
    (alone, clean, noisy_part) = found.parts["line"]
    assert (noisy_part.same, alone.same, clean.same) == (72, 1, 1)
    own, others = parts_of(scores)
    even = np.repeat(np.arange(144) % 2 == 0, 23)
    assert noisy_part["cllr"] == pytest.approx(cllr(own[::2], others[even]))
    assert any("of 70 of 144 trials" in note for note in found.notes)
    listed = Comparisons.all_of(scores).listed()
    kept = ~(listed.mated & (listed.trial >= 138))  # impostors of a list count too
    every = Comparisons(listed.speakers, None, listed.select(kept), "list")
    total = validated(every, llr="e").total
    assert (total.same, total.different) == (138, 144 * 23)
    strange = Attribute("conditions.csv", "line", {"else": "x"})
    with pytest.raises(UsageError, match="lists none of the trials"):
        validated(scores, llr="e", conditions=[strange])


def test_lengths_fall_into_ranges_in_their_order(tmp_path):
    path = tmp_path / "trials.csv"
    seconds = (0.5, 3, 12, 60)
    rows = [f"t{i},{seconds[i % 4]},{'ab'[i % 2]}" for i in range(144)]
    path.write_text("\n".join(["trial,seconds,line", *rows]))
    found = validated(matrix(), llr="e", conditions=read_conditions(path))
    assert [part.name for part in found.parts["seconds"]] == [
        "below 1 s", "2 to 5 s", "10 to 20 s", "40 s and more"
    ]  # fmt: skip
    assert [part.name for part in found.parts["line"]] == ["a", "b"]
    for text, what in [("trial,seconds\nt1,long\n", "line 2"), ("t1\n", "one trial and its"),
                       ("trial,seconds\nt1,inf\n", "invalid length 'inf'")]:  # fmt: skip
        path.write_text(text)
        with pytest.raises(UsageError, match=what):
            read_conditions(path)


def test_what_is_no_criterion_is_refused():
    for text in ("cllr", "cllr=1", "nonsense<1", "cllr<x", "cllr<inf", "<1", "cllr<1<2", ""):
        with pytest.raises(UsageError, match=r"invalid criterion .*cllr<=0.3"):
            Criterion.parse(text)


def statement(**given):
    criteria = tuple(map(Criterion.parse, ("cllr<=0.3", "devpav < 0.001", "eer<0.5")))
    return ValidationStatement("same", "other", "readers", "telephone", criteria, **given)


@pytest.fixture(scope="module")
def made():
    scores = matrix(name=EVIL)
    line = Attribute("c.csv", "line <b>", {f"t{i}": ("x", "<i>")[i % 2] for i in range(144)})
    return validate(scores, llr="e", conditions=[line], replicates=20, notes=("A <note>.",))


def test_the_document_stands_by_itself_and_says_what_was_not_stated(made):
    page = render_html(validation_page([made], statement(), {"a.npy": "0" * 64}))
    text = read_alone(page).text
    assert "<script>alert" not in page
    assert "<i>" not in page
    assert page.count("<svg") == 5
    for words in ("Tippett plot", "PAV plot", "ECE plot", "DET curve", "Histograms of LRs",
                  "not met", "Consensus on validation of forensic voice comparison", "ISO 21043",
                  "ENFSI 2015", "readers", "A <note>."):  # fmt: skip
        assert words in text, words
    assert "not stated" not in text
    text = Reader(render_html(validation_page([made], ValidationStatement()))).text
    assert text.count("not stated") == 9
    assert "Nothing is decided" in text


def test_csv_and_json_have_every_measure(made, tmp_path):
    rows = list(csv.DictReader(io.StringIO(validation_csv([made], statement()))))
    assert len(rows) == 3 * len(MEASURES)
    met = {row["measure"]: row["met"] for row in rows if row["met"]}
    assert met == {"cllr": "yes", "devpav": "no", "eer": "yes"}
    found = validation_json([made], statement())
    (system,) = found["systems"]
    assert found["statement"]["h1"] == "same"
    for row in rows:
        part = system if not row["by"] else system["parts"][row["by"]][row["part"]]
        value = part["figures"][row["measure"]]["value"]
        assert value == pytest.approx(float(row["value"]))
    path = tmp_path / "v.html"
    beside = save_validation([made], path)
    assert [each.name for each in beside] == ["v.csv", "v.json"]
    assert json.loads(beside[1].read_text())["statement"]["h1"] is None
    assert all(each.stat().st_mode & 0o777 == 0o600 for each in (path, *beside))


def test_a_criterion_that_the_interval_does_not_meet_is_met_with_a_reservation(made):
    cllr = made.total.figures["cllr"]
    between = f"{(cllr.value + cllr.high) / 2:.4f}"
    told = ValidationStatement(
        criteria=(Criterion.parse(f"cllr<={between}"), Criterion.parse("cllr<9"))
    )
    end = format_value(cllr.high, "bits")
    expected = f"cllr <= {float(between):g} is met, but the interval reaches {end}"
    assert expected in Reader(render_html(validation_page([made], told))).text
    (system,) = validation_json([made], told)["systems"]
    assert list(system["figures"]["cllr"]["criteria"].values()) == [True, True]
    assert system["figures"]["cllr"]["reservations"] == [expected]
    rows = csv.DictReader(io.StringIO(validation_csv([made], told)))
    assert next(row["note"] for row in rows if row["measure"] == "cllr") == expected
    above = Criterion.parse("elub_high>=1")
    assert above.worst_end(replace(cllr, value=2.0, low=0.5, high=3.0)) == 0.5
    assert above.worst_end(replace(cllr, value=0.9, low=0.5, high=3.0)) is None  # not met


def test_curves_are_what_they_are_called(made):
    lines = curves(made)
    middle = lines["ece"].x.size // 2
    assert lines["ece"].x[middle] == pytest.approx(0.0, abs=1e-12)
    assert lines["ece"].y[middle] == pytest.approx(made.total["cllr"])
    assert lines["ece_calibrated"].y[middle] == pytest.approx(made.total["min_cllr"])
    assert lines["ece_nothing"].y[middle] == pytest.approx(1.0)
    assert (lines["ece_calibrated"].y <= lines["ece"].y + 1e-12).all()
    for name, sign in (("tippett_same", 1), ("tippett_different", -1), ("pav", 1)):
        assert (np.diff(lines[name].y[np.isfinite(lines[name].y)]) * sign >= 0).all()
    at_zero = np.interp(0.0, lines["tippett_same"].x, lines["tippett_same"].y)
    assert at_zero == pytest.approx(made.total["misleading_same"], abs=0.03)


# ------------------------------------------------------------------------------- the verbal scale

ENDS = [
    (1, "no"), (1.99, "no"), (2, "weak"), (10, "weak"), (10.01, "moderate"), (100, "moderate"),
    (100.1, "moderately strong"), (1000, "moderately strong"), (1001, "strong"),
    (10_000, "strong"), (10_001, "very strong"), (1_000_000, "very strong"),
    (1_000_001, "extremely strong"), (np.inf, "extremely strong"),
]  # fmt: skip
"""Likelihood ratios at and beyond the ends that the guideline prints."""


@pytest.mark.parametrize(("ratio", "term"), ENDS)
def test_words_begin_where_the_guideline_has_it_in_both_directions(ratio, term):
    degree = TERMS.index(term)
    for logarithm, unit in ((np.log2, 1.0), (np.log10, np.log2(10)), (np.log, np.log2(np.e))):
        bits = logarithm(ratio) * unit
        assert degrees_of_support([bits, -bits]).tolist() == [degree, -degree]


@given(st.floats(-40, 40), st.floats(-15, 0), st.floats(0, 15))
def test_no_word_is_stronger_than_that_of_the_bound(bits, low, high):
    degree, least, most = degrees_of_support([bits, low, high], (low, high)).tolist()
    assert least <= degree <= most
    assert degrees_of_support(-bits, (-high, -low)) == -degree
    assert degree == degrees_of_support(min(max(bits, low), high))


def test_a_ratio_that_is_no_number_has_no_word():
    for arguments in (([1.0, np.nan],), ([1.0], (np.nan, 1.0)), ([1.0], (-1.0, np.nan))):
        with pytest.raises(UsageError, match="NaN has no verbal term"):
            degrees_of_support(*arguments)


def test_the_document_has_words_up_to_the_bounds(made):
    (system,) = validation_json([made], statement())["systems"]
    rows = system["verbal_scale"]
    assert [row["support"] for row in rows] == [describe_degree(d) for d in range(6, -7, -1)]
    for kind in ("same", "different"):
        assert sum(row[kind] for row in rows) == pytest.approx(1.0)
        assert all(row[kind] == 0 for row in rows if not row["within_bounds"])
    low, high = made.total.supported_bits
    assert -np.log2(1 + made.total.speakers) <= low < 0 < high <= np.log2(1 + made.total.pairs)
    within = [row["support"] for row in rows if row["within_bounds"]]
    bounds = [describe_degree(d) for d in degrees_of_support([high, low]).tolist()]
    assert [within[0], within[-1]] == bounds
    text = read_alone(render_html(validation_page([made], statement()))).text
    assert f"at most {bounds[0]} (LR {2**high:,.3g}), at most {bounds[1]} (LR 1/" in text
    assert text.count("beyond the bound") == 2 * (len(rows) - len(within))


@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_perfect_separation_is_drawn_and_said(scale):
    perfect = separated(10, 3)
    found = validated(replace(perfect, scores=perfect.scores * scale), replicates=10)
    assert "separate perfectly" in found.calibration
    assert found.total["devpav"] is None
    assert found.total["min_cllr"] == 0
    page = render_html(validation_page([found], statement()))
    assert "perfect separation" in page
    assert "not decided" in page
