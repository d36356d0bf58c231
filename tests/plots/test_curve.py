from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from monitor.errors import StoreError, UsageError
from monitor.plots.calibration import plot_rank_models
from monitor.plots.canvas import BLUE, spread_apart
from monitor.plots.curve import (
    bits_in,
    caption,
    curve_points,
    draw_run,
    heading,
    plot_crowds,
    plot_run,
    read_columns,
    summary,
)
from tests.records import events

CEILING = math.log2(50)


def start(**changes: Any) -> dict[str, Any]:
    record = {"type": "start", "speakers": 50, "ceiling": CEILING, "watch": None, "plateau": 3.1}
    return {**record, **changes}


def reading(seconds: float, bits: float | None, **changes: Any) -> dict[str, Any]:
    record = {
        "type": "reading",
        "seconds": seconds,
        "speech": 0.8 * seconds,
        "bits": bits,
        "bits_low": None if bits is None else bits - 0.3,
        "bits_high": None if bits is None else bits + 0.3,
        "expected_bits": 1.0,
        "expected_bits_low": 0.8,
        "expected_bits_high": 1.2,
        "ceiling": CEILING,
        "plateau": 3.1,
        "guides": {"linear": min(0.1 * seconds, CEILING), "sqrt": 0.1 * math.sqrt(seconds)},
        "assumes_enrolled": True,
    }
    return {**record, **changes}


def rising(n: int, step: float = 1.0) -> list[dict[str, Any]]:
    return [reading(step * i, 2 + math.sin(i / 9)) for i in range(1, n + 1)]


ALERT = {
    "type": "alert",
    "seconds": 20.0,
    "speech": 16.1,
    "rule": "bits>3 for 5 s",
    "field": "bits",
    "threshold": 3.0,
    "state": "raised",
    "value": 3.4,
}
GAP = {"type": "gap", "seconds": 12.0, "reason": "not finite", "lost_seconds": 0.01}

CHANGE = {"type": "change", "seconds": 41.0, "since_seconds": 35.0, "features": ["f0"]}
OPEN = {"since_seconds": 35.0, "features": ["f0"]}


def noted() -> list[dict[str, Any]]:
    """Another voice from 35 s on, noticed at 41 s: its evidence is added to the first one's."""
    first, then = rising(60)[:40], rising(60)[40:]
    changed = [{**record, "change": OPEN} for record in then]
    return [start(watch="4088"), *first, {**CHANGE, "action": "note"}, *changed]


def split(speech: float = 0.8) -> list[dict[str, Any]]:
    """The same, begun afresh after the reading with which it was noticed."""
    first = rising(41)
    then = [
        reading(t, 1.0, speech=speech * (t - 41), stream=2, guides={"linear": 0.1, "sqrt": 0.2})
        for t in range(42, 60)
    ]
    change = {**CHANGE, "action": "split"}
    return [start(watch="4088"), *first[:-1], change, first[-1], *then]


def told(seconds: float, bits: float, **changes: Any) -> dict[str, Any]:
    """A reading with evidence."""
    crowds = [{"people": m, "bits": min(bits, math.log2(m)), "bits_low": bits - 0.5,
               "bits_high": bits + 0.5} for m in (50, 10**6)]  # fmt: skip
    evidence = {
        "bits": bits, "bits_low": bits - 0.5, "bits_high": bits + 0.5, "headline": "evidence",
        "closed_set_bits": min(bits, CEILING), "evidence_bits": bits,
        "support_bits": 14.2, "at_least": bits >= 14.2, "among": crowds, "enrolled": 0.97,
    }  # fmt: skip
    return {**reading(seconds, bits), "assumes_enrolled": False, **evidence, **changes}


def evidence_run(top: float = 11.3) -> list[dict[str, Any]]:
    return [start(watch="4088", support_bits=14.2),
            *(told(t, min(0.4 * t, top)) for t in range(1, 61))]  # fmt: skip


RUNS: dict[str, list[dict[str, Any]]] = {
    "plain": [start(), *rising(60), ALERT, GAP],
    "nothing": [],
    "only a start": [start()],
    "one": [reading(3.0, 1.0)],
    "zero bits": [reading(t, 0.0) for t in range(1, 30)],
    "negative": [start(watch="4088"), *(reading(t, -2.0) for t in range(1, 30))],
    "null": [reading(t, None, withheld="template_mismatch", guides=None) for t in range(1, 9)],
    "bare": [{"type": "reading", "seconds": 1.0, "speech": 1.0}],
    "no speech": [reading(t, 0.0, speech=0.0) for t in range(4)],
    "silence first": [reading(0.0, 0.0), *rising(9)],
    "same length": [reading(t, 1.0, speech=2.0) for t in range(1, 9)],
    "one speaker": [reading(t, 0.0, ceiling=0.0) for t in range(1, 9)],
    "odd name": [start(watch="$x_{$\n\x1b 話者" * 9), *rising(9)],
    "another voice": noted(),
    "split": split(),
    "evidence": [*evidence_run(), {**ALERT, "field": "evidence_bits"}, GAP],
    "evidence against": [start(watch="4088"), *(told(t, -9.0) for t in range(1, 9))],
    "more than is supported": evidence_run(14.2),
    "evidence now and then": [start(watch="4088"), told(1.0, 2.0), reading(2.0, 1.0)],
    "evidence of another voice": [start(watch="4088"), told(9.0, 2.0, change=OPEN)],
    "split at once": [start(), {**CHANGE, "action": "split"}, *rising(60)],
    "flapping": [
        *rising(400),
        *({**ALERT, "seconds": t, "speech": None, "state": s} for t in range(400) for s in "rc"),
        *({**GAP, "seconds": t, "lost_seconds": None} for t in range(400)),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_every_run_can_be_drawn_without_a_warning(name: str, tmp_path: Path) -> None:
    plot_run(events(RUNS[name]), tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "magic"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG")]
)
def test_suffixes_and_repeatability(suffix: str, magic: bytes, tmp_path: Path) -> None:
    first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    plot_run(events(RUNS["plain"]), first)
    plot_run(events(RUNS["plain"]), second)
    assert first.read_bytes().startswith(magic)
    assert first.read_bytes() == second.read_bytes()


def test_the_picture_says_what_it_shows(tmp_path: Path) -> None:
    path = tmp_path / "run.svg"
    plot_run(events([start(watch="4088"), *rising(60), ALERT, GAP]), path)
    text = path.read_text()
    for words in (
        "the attacker gives 4088 a chance of 1 in",
        "ceiling: log₂ 50 = 5.64 bits",
        "one person named",
        "every second counts in full",
        "seconds count less and less",
        "average plateau: 3.10 bits",
        "alert: bits&gt;3 for 5 s",
        "audio lost",
        "peak 3 bits",
        "1 in 25",
        "Bits of 4088",
        "95 % interval",
    ):
        assert words in text, words


def test_the_curve_of_evidence_goes_on_above_the_ceiling(tmp_path: Path) -> None:
    path = tmp_path / "run.svg"
    plot_run(
        events([*evidence_run(), {**ALERT, "field": "evidence_bits", "threshold": 10.0}]), path
    )
    text = path.read_text()
    for words in (
        "After 48 s of speech, about 400 people in a city of a million match",
        "11.3 bits of evidence",
        "closed-set: 5.6 bits of at most 5.64 among the 50 enrolled",
        "this voice now: 11.3 bits",
        "about 400 in a million",
        "closed-set ceiling",
        "<!-- village -->",
        "<!-- town -->",
        "one match per",
        "alert threshold: 10 bits",
        "Evidence is not proof",
        "97 % likely",
    ):
        assert words in text, words
    assert "guide" not in text
    drawn: list[Any] = []
    with mock.patch("monitor.plots.curve.draw", lambda _, paint, __: drawn.append(paint)):
        plot_run(events(evidence_run()), path)
    figure = Figure()
    drawn[0](figure)
    highest = [
        np.max(line.get_ydata()) for line in figure.axes[0].lines if line.get_color() == BLUE
    ]
    assert max(highest) == pytest.approx(11.3)
    plot_run(events(evidence_run(14.2)), path)
    assert "at least 14.2 bits" in path.read_text()
    assert "about 50 people or fewer" in path.read_text()


@pytest.mark.slow
def test_nothing_that_is_written_leaves_the_picture(tmp_path: Path) -> None:
    """The last words of a long title warn that low bits do not mean safe."""
    crowd = {"people": 10**6, "bits": 5.0, "bits_low": 3.9, "bits_high": 6.1, "fitting": 31250.0}
    last = told(60.0, 5.0, differs=["bandwidth_hz"], spread_low=4.0, spread_high=9.0)
    last |= {"among": [crowd], "enrolled": 0.4}
    said = {"type": "notice", "seconds": 7.0, "kind": "conditions differ", "text": "a word " * 40}
    drawn: list[Any] = []
    with mock.patch("monitor.plots.curve.draw", lambda _, paint, __: drawn.append(paint)):
        records = [start(watch="4088", headline="evidence"), *(told(t, 5.0) for t in range(1, 60))]
        plot_run(events([*records, last, said]), tmp_path / "run.png")
    figure = Figure(figsize=(12, 7.5), dpi=100)
    drawn[0](figure)
    FigureCanvasAgg(figure).draw()
    words = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
    assert "between" in words
    assert "match: low bits do not mean safe" in words
    for text in figure.texts:
        box = text.get_window_extent()
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= 1200, text
        assert box.y1 <= 750, text


@pytest.mark.slow
@pytest.mark.parametrize("why", [{}, {"withheld": "too few people"}])
def test_a_figure_that_has_ended_is_not_that_of_now(why: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "run.svg"
    features = {"f0": {"usable": 9.0}, "style": {"usable": 0.0}}
    later = [reading(t, 1.0, features=features, **why) for t in range(4, 41)]
    plot_run(events([start(watch="4088"), *(told(t, t) for t in range(1, 4)), *later]), path)
    text = path.read_text()
    for words in ("evidence until 2.4 s: 3 bits;", "closed-set: 1 bit of at most"):
        assert words in text, words
    said = " ".join(" ".join(re.findall(r"<!-- (.*?) -->", text, re.DOTALL)).split())
    assert ("too few people" if why else "none since, as no rank model tells") in said
    assert "this voice now" not in text
    assert text.count("<!-- peak") == 0
    plot_run(
        events(
            [start(watch="4088"), reading(1.0, 2.0), reading(2.0, None, withheld="no rank model")]
        ),
        path,
    )
    text = path.read_text()
    assert "bits until 0.8 s: 2 bits;" in text
    assert "this voice now" not in text


@pytest.mark.slow
def test_one_voice_among_crowds_of_several_sizes(tmp_path: Path) -> None:
    path = tmp_path / "crowds.svg"
    plot_crowds(events(evidence_run()), path, [50, 10**4, 10**6])
    text = path.read_text()
    for words in (
        "the 50 enrolled:", "a town of ten thousand:", "a city of a million:",
        "11.3 of 19.9 bits", "1 of about 400 left", "What the voice of 4088 was worth",
    ):  # fmt: skip
        assert words in text, words
    plot_crowds(events(evidence_run()), tmp_path / "crowds.png", [50, 10**4, 10**6])
    assert (tmp_path / "crowds.png").stat().st_size < 100_000
    with pytest.raises(UsageError, match="no evidence to draw"):
        plot_crowds(events(RUNS["plain"]), path, [50])
    with pytest.raises(UsageError, match="no room for the 50 enrolled"):
        plot_crowds(events(evidence_run()), path, [20])


@pytest.mark.slow
@given(st.lists(st.floats(-20, 14), min_size=3, max_size=3), st.integers(3, 10**8))
def test_any_crowd_follows_from_one(bits: list[float], people: int) -> None:
    ratios = np.exp2(bits)

    def among(m: int) -> float:
        return float(np.log2(m * ratios[0] / (ratios.sum() + m - 3)))

    crowds = [{"people": m, "bits": among(m)} for m in (3, 10**6)]
    known = {"type": "reading", "evidence_bits": bits[0], "among": crowds}
    (found,) = bits_in(events([known]), people)
    assert found == pytest.approx(among(people), abs=1e-4)


def test_other_suffixes_and_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.png, \.svg or \.pdf"):
        plot_run(events([]), tmp_path / "run.jpg")
    with pytest.raises(StoreError, match="another place"):
        plot_run(events([]), tmp_path / "missing" / "run.png")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.png"
    path.write_bytes(b"old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    with pytest.raises(StoreError, match="No space left"):
        plot_run(events([]), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_ten_hours_are_drawn_small(tmp_path: Path) -> None:
    plot_run(events([start(), *rising(36_000)]), tmp_path / "run.svg")
    assert (tmp_path / "run.svg").stat().st_size < 1_500_000


def test_words() -> None:
    watched = read_columns(
        events([start(watch="4088"), reading(60.0, CEILING - math.log2(12)), GAP])
    )
    assert heading(watched) == "After 48 s of speech, the attacker gives 4088 a chance of 1 in 12"
    assert "by chance it would be 1 in 50" in summary(watched)
    assert "1 gap, 0.01 s of audio lost" in summary(watched)
    nobody = read_columns(events([start(), reading(60.0, CEILING)]))
    assert "hardly doubts which of 50 people it is" in heading(nobody)
    assert "assuming the speaker is enrolled" in caption(nobody)
    why = "f0 cannot tell; it takes a speaker embedding (voice)"
    unknown = read_columns(
        events([start(), reading(60.0, 1.0, enrolled=None, enrolled_withheld=why)])
    )
    asked = "Is the speaker enrolled at all?"
    assert f"{asked} Not known: it takes a speaker embedding (voice)." in caption(unknown)
    assert f"{asked} 97 % likely." in caption(
        read_columns(events([start(), reading(9.0, 1.0, enrolled=0.97)]))
    )
    assert heading(read_columns(events([]))) == "Nothing can be said about this voice yet"


@given(
    st.lists(
        st.tuples(st.floats(0.0, 2.0), st.one_of(st.just(np.nan), st.floats(-9, 9))),
        min_size=1,
        max_size=200,
    ),
    st.integers(1, 30),
)
def test_thinning_keeps_ends_and_extremes(points: list[tuple[float, float]], limit: int) -> None:
    x = 0.1 + np.cumsum([step for step, _ in points])
    y = np.array([value for _, value in points])
    keep = curve_points(x, y, limit)
    assert np.all(np.diff(keep) > 0)
    assert keep.size <= max(limit, 4 * (limit + 1))
    assert {0, y.size - 1} <= set(keep.tolist())
    if np.isfinite(y).any():
        assert np.nanmax(y[keep]) == np.nanmax(y)
        assert np.nanmin(y[keep]) == np.nanmin(y)


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 0.1)), max_size=9))
def test_labels_never_touch(labels: list[tuple[float, float]]) -> None:
    labels.sort()
    sizes = [size for _, size in labels]
    centres = spread_apart([at for at, _ in labels], sizes, 0.0, 1.0)
    for i in range(1, len(centres)):
        assert centres[i] - centres[i - 1] >= (sizes[i] + sizes[i - 1]) / 2 - 1e-9
    if centres:
        assert centres[0] >= sizes[0] / 2 - 1e-9
        assert centres[-1] <= 1 - sizes[-1] / 2 + 1e-9


def rank_model(length: float, bits: float, **changes: Any) -> dict[str, Any]:
    row = {
        "feature": "f0",
        "session": "cross",
        "T": length,
        "D": 100.0,
        "common_candidates": 50,
        "common_bits": bits,
        "common_bits_low": bits / 2,
        "common_bits_high": bits + 0.5,
    }
    return {**row, **changes}


@pytest.mark.slow
@pytest.mark.parametrize(
    "rows",
    [
        [],
        [rank_model(1.0, 0.5)],
        [rank_model(t, t / 50, session=s) for s in ("same", "cross") for t in (0.3, 1.0, 60.0)],
    ],
)
def test_rank_models_can_be_drawn(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    plot_rank_models(rows, tmp_path / "rank_models.svg")
    text = (tmp_path / "rank_models.svg").read_text()
    for session in ("same", "cross"):
        title = f"<!-- f0, {session} session -->"
        assert text.count(title) == any(row["session"] == session for row in rows)
    assert text.count("<!-- D = 100 s -->") == bool(rows)  # each length once, in the legend


@pytest.mark.slow
def test_a_feature_has_panels_of_its_own_and_one_ceiling(tmp_path: Path) -> None:
    features, templates = ("f0", "phones", "f0+phones"), (10.0, 30.0, 100.0)
    rows = [
        rank_model(t, bits, feature=feature, session=session, D=d)
        for feature in features
        for session in ("same", "cross")
        for d in templates
        for t, bits in ((1.0, 0.5), (10.0, 1.5))
    ]
    plot_rank_models(rows, tmp_path / "rank_models.svg")
    text = (tmp_path / "rank_models.svg").read_text()
    for title in [f"{f}, {s} session" for f in features for s in ("same", "cross")]:
        assert text.count(f"<!-- {title} -->") == 1
    for template in ("10 s", "30 s", "100 s"):
        assert text.count(f"<!-- D = {template} -->") == 1
    assert "N = 50 candidates" in text


def test_another_voice_is_marked_and_the_title_claims_nothing(tmp_path: Path) -> None:
    plot_run(events(noted()), tmp_path / "run.svg")
    text = (tmp_path / "run.svg").read_text()
    assert "Another voice since 0:35: these bits may not be 4088" in text
    assert text.count("another voice since 0:35") == 1  # at its line
    assert "several voices now" in text
    assert "a chance of" not in text
    run = read_columns(events(noted()))
    assert run.doubtful.tolist() == [False] * 40 + [True] * 20


@pytest.mark.parametrize("speech", [0.8, 3.0], ids=["shorter", "longer than the first voice's"])
def test_the_line_breaks_at_a_split(speech: float, tmp_path: Path) -> None:
    run = read_columns(events(split(speech)))
    assert list(run.fresh) == [41]  # after the last reading on the old evidence
    assert np.all(np.diff(run.columns["speech"]) > 0)
    assert run.columns["speech"][41] == pytest.approx(0.8 * 41 + speech)
    assert heading(run).startswith("The voice since 0:35: after ")
    drawn: list[Any] = []
    with mock.patch("monitor.plots.curve.draw", lambda _, paint, __: drawn.append(paint)):
        plot_run(events(split(speech)), tmp_path / "run.png")
    figure = Figure()
    drawn[0](figure)
    lines = [line for line in figure.axes[0].lines if line.get_color() == BLUE]
    assert [np.size(line.get_xdata()) for line in lines][:2] == [41, 18]
    assert "another voice since 0:35" in [text.get_text() for text in figure.axes[0].texts]


def test_the_protected_side_is_drawn_with_whom_it_is_told_to(tmp_path):
    records = [start(watch="ann", protected={"method": "mcadams:0.8"})]
    for each in rising(40):
        side = {"bits": each["bits"] - 2, "bits_low": each["bits"] - 2.5,
                "bits_high": each["bits"] - 1.5, "by": "lazy-informed",
                "attackers": {"ignorant": {}, "lazy-informed": {}}}  # fmt: skip
        records.append({**each, "protected": side})
    drawn: list[str] = []
    lines: list[int] = []
    save = Figure.savefig

    def look(figure: Figure, *args: Any, **options: Any) -> None:
        drawn.extend(text.get_text() for axes in figure.axes for text in axes.texts)
        lines.append(sum(len(axes.lines) for axes in figure.axes))
        save(figure, *args, **options)

    with mock.patch.object(Figure, "savefig", look):
        plot_run(events(records), tmp_path / "both.svg")
        plot_run(events([start(watch="ann"), *rising(40)]), tmp_path / "one.svg")
    (label,) = [" ".join(text.split()) for text in drawn if "mcadams" in text]
    assert label.startswith("through mcadams:0.8: ")
    assert "bits, 2.0 fewer, to the strongest attacker tried, who has enrolled" in label
    run = read_columns(events(records))
    assert np.allclose(run.columns["bits"] - run.columns["protected_bits"], 2)
    assert run.protected == "mcadams:0.8"


def evident(seconds: float) -> dict[str, Any]:
    """Evidence that stays below both guides; 5 bits are calibrated at a second, 13 supported."""
    grown = {"linear": min(5 * seconds, 13.0), "sqrt": min(5 * math.sqrt(seconds), 13.0)}
    bits = 4 + math.log2(seconds)
    return reading(
        seconds, bits, speech=seconds, headline="evidence", closed_set_bits=5.0,
        evidence_bits=bits, support_bits=13.0, evidence_guides=grown,
    )  # fmt: skip


def lines_of(records: list[dict[str, Any]], **options: Any) -> list[tuple[Any, Any]]:
    axes = draw_run(events(records), **options).axes[0]
    return [(np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in axes.lines]


def test_composition_stands_beside_evidence_where_it_is_asked_for():
    records = [start(watch="ann"), *map(evident, range(1, 61))]
    before, after = lines_of(records), lines_of(records, guides=True)
    grown = {
        power: [y for x, y in after if x.size > 9 and np.allclose(y, 5 * x**power)]
        for power in (1.0, 0.5)
    }
    assert all(len(found) == 1 for found in grown.values())
    assert all(y.max() == pytest.approx(13.0) for (y,) in grown.values())  # what is supported
    assert not any(np.allclose(y, 5 * np.sqrt(x)) for x, y in before if x.size > 9)
    assert any((y == 13.0).all() for _, y in after)


def test_a_declared_epsilon_composes_in_bits_in_the_same_picture():
    nats = {"basic": 0.5, "advanced": 0.4, "optimal": 0.3}
    records = [start(watch="ann")]
    for seconds in range(1, 61):
        promise = {f"{name}_nats": value * seconds for name, value in nats.items()}
        records.append({**evident(seconds), "declared": promise})
    drawn = lines_of(records, guides=True)
    for value in nats.values():
        bits = [y for x, y in drawn if x.size > 9 and np.allclose(y, value * x / math.log(2))]
        assert len(bits) == 1
        assert bits[0].max() < 16  # as far as it fits beside the evidence
    assert not any(
        np.allclose(y, 0.3 * x / math.log(2)) for x, y in lines_of(records) if x.size > 9
    )
