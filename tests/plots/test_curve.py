"""The picture of a run: whatever happened in it is drawn, and nothing of it reads as comforting."""

import math
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

from monitor.errors import StoreError, UsageError
from monitor.plots.canvas import BLACK, BLUE
from monitor.plots.columns import curve_points, read_columns
from monitor.plots.curve import bits_in, draw_run, plot_crowds, plot_run
from monitor.plots.recording import make_curves
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
    "negative": [start(watch="4088"), *(reading(t, -2.0) for t in range(1, 30))],
    "null": [reading(t, None, withheld="template_mismatch", guides=None) for t in range(1, 9)],
    "bare": [{"type": "reading", "seconds": 1.0, "speech": 1.0}],
    "no speech": [reading(t, 0.0, speech=0.0) for t in range(4)],
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


def words_of(figure: Figure) -> str:
    texts = [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)]
    return " ".join(" | ".join(texts).split())


def lines_of(figure: Figure, colour: str | None = None) -> list[tuple[Any, Any]]:
    lines = [line for line in figure.axes[0].lines if colour in (None, line.get_color())]
    return [(np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_every_run_can_be_drawn_without_a_warning(name, tmp_path):
    plot_run(events(RUNS[name]), tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_other_suffixes_and_places_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"\.png, \.svg or \.pdf"):
        plot_run(events([]), tmp_path / "run.jpg")
    with pytest.raises(StoreError, match="another place"):
        plot_run(events([]), tmp_path / "missing" / "run.png")
    assert list(tmp_path.iterdir()) == []


WATCHED = start(watch="4088")
STYLE = {"f0": {"usable": 9.0}, "style": {"usable": 0.0}}
ENDED = [WATCHED, *(told(t, t) for t in range(1, 4))]
ENDED += [reading(t, 1.0, features=STYLE) for t in range(4, 41)]
WITHHELD = [{**each, "withheld": "too few people"} for each in ENDED[4:]]
LATE = [WATCHED, reading(1.0, 2.0), reading(2.0, None, withheld="no rank model")]
UNKNOWN = "f0 cannot tell; a speaker embedding (voice) is needed"
AGAINST = {**ALERT, "field": "evidence_bits", "threshold": 10.0}


STRANGER = [WATCHED, *(told(t, -6.5, enrolled=0.03, top=[["12", 0.4]]) for t in range(1, 61))]
GROWN = [WATCHED, *(told(t, min(0.4 * t, 11.3), evidence_guides={"linear": 0.2 * t, "sqrt": 0.3})
                    for t in range(1, 61))]  # fmt: skip
DECLARED = {"windows": 4, "basic_nats": 2.0, "advanced_nats": 1.5, "optimal_nats": 1.0,
            "most_bits": 4.2, "empty": False}  # fmt: skip
RULE = {"rule": "bits>10", "field": "bits", "threshold": 10.0, "level": "alert",
        "hold_seconds": 5.0, "least_speech_seconds": 3.0}  # fmt: skip


@pytest.mark.parametrize(
    ("records", "said", "unsaid"),
    [
        ([WATCHED, *rising(60), ALERT, GAP],
         ["After 48 seconds, the attacker gives 4088 a chance of 1 in", "this voice: 2.4 bits",
          "50 people allow no more than 5.6 bits", "1 in 25", "linear growth", "square-root growth",
          "every second disclosed as much as the first", "alert after 16 seconds: over 3 bits",
          "audio lost: 0.01 s", "Bits of 4088", "95 % interval"], ["plateau", "average voice |"]),
        ([*evidence_run(), AGAINST],
         ["After 48 seconds, about 400 people in a city of a million match this voice",
          "this voice: 11.3 bits", "calibration supports no more than 14.2 bits", "1 in 1,000",
          "1 in 8,000", "people who match", "over 10 bits", "Evidence is not proof",
          "97 % likely"], ["linear", "closed-set"]),
        (GROWN, ["linear growth", "square-root growth"], []),
        (evidence_run(14.2), ["at least 14.2 bits", "at most 50 people in a city"], []),
        ([start(watch="4088", alerts=[RULE]), *(told(t, 4.0) for t in range(1, 9))],
         ["alert above 10 bits: not raised"], []),
        ([start(watch="4088", alerts=[{**RULE, "threshold": 15.0}]), told(9.0, 4.0)],
         ["Out of reach: an alert above 15 bits"], ["not raised"]),
        # a title that names nobody when probably nobody enrolled speaks
        (STRANGER, ["probably none of the 50 people enrolled is speaking",
                    "3 % likely to be one of the 50 enrolled"], ["evidence against"]),
        ([start(), reading(60.0, 5.6, enrolled=0.02, top=[["12", 0.9]])],
         ["After 48 seconds, probably none of the 50 people enrolled is speaking"],
         ["hardly doubts"]),
        # a figure that has ended is not that of now
        (ENDED, ["evidence until 2 seconds: 3 bits;", "none since, for lack of a rank model"],
         ["this voice:"]),
        ([*ENDED[:4], *WITHHELD], ["evidence until 2 seconds: 3 bits;", "too few people"],
         ["this voice:"]),
        (LATE, ["bits until 1 second: 2 bits;"], ["this voice:"]),
        # nobody is named after another voice
        (noted(), ["Another voice since 0:35: these bits may not be 4088",
                   "another voice since 0:35", "several voices: 2.4 bits"], ["a chance of"]),
        ([start(), reading(60.0, CEILING)],
         ["hardly doubts which of 50 people it is", "assumes that the speaker is enrolled"], []),
        ([start(), reading(60.0, 1.0, enrolled=None, enrolled_withheld=UNKNOWN)],
         ["Is the speaker enrolled at all? Not known: a speaker embedding (voice) is needed."], []),
        ([start(), reading(9.0, 1.0, enrolled=0.97)],
         ["Is the speaker enrolled at all? 97 % likely."], []),
        ([WATCHED, reading(9.0, 1.0, declared=DECLARED)], ["Guaranteed: no attacker has more"], []),
        ([], ["No figures for this voice yet"], []),
    ],
)  # fmt: skip
def test_what_the_picture_says_and_what_it_does_not(records, said, unsaid):
    text = words_of(draw_run(events(records)))
    assert [words for words in said if words not in text] == [], text
    assert [words for words in unsaid if words in text] == [], text


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (GROWN, ["closed-set ceiling, log₂ 50: 5.64 bits", "closed-set, among the 50: 5.64 bits",
                 "closed-set plateau: 3.1 bits", "closed-set average", "Peak: 11.3 bits"]),
        ([WATCHED, *rising(60)],
         ["average plateau: 3.1 bits", "average voice", "By chance it would be 1 in 50"]),
        ([WATCHED, *(reading(t, 1.0, declared=DECLARED) for t in range(1, 9))],
         ["basic composition of the epsilon", "optimal composition of the epsilon"]),
        ([WATCHED, *(reading(t, 3.0, features={name: {"usable": 9.0, "local_bits": bits}
                                              for name, bits in (("f0", 1.0), ("phones", 2.0))})
                     for t in range(1, 9))], ["f0 alone", "phones alone"]),
    ],
)  # fmt: skip
def test_guides_add_what_the_plain_picture_leaves_out(records, said):
    plain, guided = (words_of(draw_run(events(records), guides=g)) for g in (False, True))
    assert [words for words in said if words not in guided] == [], guided
    assert [words for words in said if f"| {words}" in plain] == [], plain


def test_the_growth_lines_start_with_the_first_bits_and_grow_with_their_power():
    lines = lines_of(draw_run(events(GROWN)), BLACK)
    powers = [np.polyfit(np.log(x), np.log(y), 1)[0] for x, y in lines]
    assert powers == pytest.approx([1.0, 0.5])
    assert lines[0][1][0] == pytest.approx(0.2)


def test_what_calibration_does_not_support_is_hatched_down_to_the_figure_at_the_cap():
    figure = draw_run(events(evidence_run(14.2)))
    (hatched,) = [area for area in figure.axes[0].collections if area.get_hatch()]
    low, high = hatched.get_datalim(figure.axes[0].transData).intervaly
    assert low == pytest.approx(14.2)
    assert high > 14.2
    assert max(np.max(y) for _, y in lines_of(figure, BLUE)) == pytest.approx(14.2)


@pytest.mark.slow
@pytest.mark.parametrize("guides", [False, True])
@pytest.mark.parametrize("name", [name for name in RUNS if name != "odd name"])
def test_labels_neither_leave_the_picture_nor_cover_each_other(name, guides):
    figure = draw_run(events(RUNS[name]), guides=guides)
    boxes = [(text, text.get_window_extent()) for text in figure.texts if text.get_text()]
    for text, box in boxes:
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= figure.bbox.x1, text
        assert box.y1 <= figure.bbox.y1, text
    for (text, box), (other, beside) in combinations(boxes, 2):
        assert not box.overlaps(beside), (text, other)


def test_a_browser_with_a_dark_theme_shows_the_svg_dark(tmp_path):
    plot_run(events(RUNS["plain"]), tmp_path / "run.svg")
    root = ElementTree.parse(tmp_path / "run.svg").getroot()
    style = root[0].text or ""
    assert "prefers-color-scheme:dark" in style
    assert "invert" in style


def test_a_picture_for_a_phone_is_as_wide_as_its_screen(tmp_path):
    plot_run(events(GROWN), tmp_path / "run.png", width=390)
    assert imread(tmp_path / "run.png").shape[1] == 2 * 390


@pytest.mark.slow
def test_nothing_that_is_written_leaves_the_picture():
    """The last words of a long title warn that low bits do not mean safe."""
    crowd = {"people": 10**6, "bits": 5.0, "bits_low": 3.9, "bits_high": 6.1, "fitting": 31250.0}
    last = told(60.0, 5.0, differs=["bandwidth_hz"], spread_low=4.0, spread_high=9.0)
    last |= {"among": [crowd], "enrolled": 0.4}
    notice = {"type": "notice", "seconds": 7.0, "kind": "conditions differ", "text": "a word " * 40}
    records = [start(watch="4088", headline="evidence"), *(told(t, 5.0) for t in range(1, 60))]
    figure = draw_run(events([*records, last, notice]))
    words = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
    assert "between" in words
    assert "match this voice: low bits do not mean safe" in words
    for text in figure.texts:
        box = text.get_window_extent()
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= figure.bbox.x1, text
        assert box.y1 <= figure.bbox.y1, text


def test_evidence_is_drawn_above_the_ceiling_and_doubt_after_another_voice():
    drawn = lines_of(draw_run(events(evidence_run())), BLUE)
    assert max(np.max(y) for _, y in drawn) == pytest.approx(11.3)
    run = read_columns(events(noted()))
    assert run.doubtful.tolist() == [False] * 40 + [True] * 20


@pytest.mark.parametrize("speech", [0.8, 3.0], ids=["shorter", "longer than the first voice's"])
def test_the_line_breaks_at_a_split(speech):
    run = read_columns(events(split(speech)))
    assert list(run.fresh) == [41]  # after the last reading on the old evidence
    assert np.all(np.diff(run.columns["speech"]) > 0)
    assert run.columns["speech"][41] == pytest.approx(0.8 * 41 + speech)
    figure = draw_run(events(split(speech)))
    assert [x.size for x, _ in lines_of(figure, BLUE)][:2] == [41, 18]
    assert "another voice since 0:35" in words_of(figure)
    assert "The voice since 0:35: after " in words_of(figure)


def test_the_protected_side_is_drawn_with_whom_it_is_told_to():
    records = [start(watch="ann", protected={"method": "mcadams:0.8"})]
    for each in rising(40):
        side = {"bits": each["bits"] - 2, "bits_low": each["bits"] - 2.5,
                "bits_high": each["bits"] - 1.5, "by": "lazy-informed",
                "attackers": {"ignorant": {}, "lazy-informed": {}}}  # fmt: skip
        records.append({**each, "protected": side})
    text = words_of(draw_run(events(records)))
    assert "through mcadams:0.8: " in text
    assert "bits, 2.0 fewer, to the strongest attacker tried, who has enrolled" in text
    assert "After 32 seconds, 1 bit unprotected, \N{MINUS SIGN}1 bits through mcadams:0.8" in text
    run = read_columns(events(records))
    assert np.allclose(run.columns["bits"] - run.columns["protected_bits"], 2)


@pytest.mark.slow
def test_one_voice_among_crowds_of_several_sizes(tmp_path):
    path = tmp_path / "crowds.svg"
    plot_crowds(events(evidence_run()), path, [50, 10**4, 10**6])
    text = path.read_text()
    for words in (
        "the 50 enrolled:", "a town of ten thousand:", "a city of a million:",
        "11.3 of 19.9 bits", "about 400 people match", "bits of 4088",
    ):  # fmt: skip
        assert words in text, words
    with pytest.raises(UsageError, match="no evidence to draw"):
        plot_crowds(events(RUNS["plain"]), path, [50])
    with pytest.raises(UsageError, match=r"20 people.* at least 50"):
        plot_crowds(events(evidence_run()), path, [20])


@pytest.mark.slow
@given(st.lists(st.floats(-20, 14), min_size=3, max_size=3), st.integers(3, 10**8))
def test_any_crowd_follows_from_one(bits, people):
    ratios = np.exp2(bits)

    def among(m: int) -> float:
        return float(np.log2(m * ratios[0] / (ratios.sum() + m - 3)))

    crowds = [{"people": m, "bits": among(m)} for m in (3, 10**6)]
    known = {"type": "reading", "evidence_bits": bits[0], "among": crowds}
    (found,) = bits_in(events([known]), people)
    assert found == pytest.approx(among(people), abs=1e-4)


@given(
    st.lists(
        st.tuples(st.floats(0.0, 2.0), st.one_of(st.just(np.nan), st.floats(-9, 9))),
        min_size=1,
        max_size=200,
    ),
    st.integers(1, 30),
)
def test_thinning_keeps_ends_and_extremes(points, limit):
    x = 0.1 + np.cumsum([step for step, _ in points])
    y = np.array([value for _, value in points])
    keep = curve_points(x, y, limit)
    assert np.all(np.diff(keep) > 0)
    assert keep.size <= max(limit, 4 * (limit + 1))
    assert {0, y.size - 1} <= set(keep.tolist())
    if np.isfinite(y).any():
        assert np.nanmax(y[keep]) == np.nanmax(y)
        assert np.nanmin(y[keep]) == np.nanmin(y)


def meeting(people, watched=(), *, end=True):
    """Records of people who speak a second each in turn, each a bit more."""
    labels = [f"S{k}" for k in range(people)]
    records = [
        {"type": "start", "speakers": 50, "ceiling": math.log2(50), "watch": None,
         "recordings": ["m.wav"], "people": [{"label": name, "seconds": 9.0} for name in labels],
         **({"watched": list(watched)} if watched else {})}
    ]  # fmt: skip
    for second in range(1, 60):
        k = second % people
        for place, name in enumerate(watched or [None]):
            about = {} if name is None else {"watch": name}
            bits = 0.5 * k + place + second / 100
            records.append(
                {"type": "reading", "seconds": float(second), "speech": 1.0, "bits": bits,
                 "ceiling": 5.64, "label": labels[k], **about}
            )  # fmt: skip
    records.append(
        {"type": "alert", "seconds": 30.0, "field": "bits", "state": "raised", "value": 2.0,
         "label": "S0", **({"watch": watched[0]} if watched else {})}
    )  # fmt: skip
    if end:
        rows = [
            {"label": name, "person": "ann", "probability": 0.9,
             "watch": watched[0] if watched else None}
            for name in labels
        ]  # fmt: skip
        records.append({"type": "end", "seconds": 60.0, "overlap_seconds": 2.5, "people": rows})
    return records


@pytest.mark.parametrize("people", [1, 2, 8])
def test_everybody_has_a_curve_and_a_name_at_its_end(people):
    records = meeting(people)
    figure = draw_run(events(records))
    curves, strip = figure.axes
    drawn = {line.get_gid(): line for line in curves.lines if line.get_gid()}
    assert set(drawn) == {f"S{k}" for k in range(people)}
    own = [r["bits"] for r in records if r["type"] == "reading" and r["label"] == "S0"]
    assert np.allclose(drawn["S0"].get_ydata(), [*own, own[-1]])
    assert np.max(drawn["S0"].get_xdata()) == 60.0
    assert f"S0, ann 90 %, {own[-1]:.1f} bits" in words_of(figure)
    assert "5.6 bits: only 1 left" in words_of(figure)
    assert "2.5 s of overlapping speech" in words_of(figure)
    assert len(strip.collections) == people
    assert [line.get_marker() for line in curves.lines].count("o") == 1


@pytest.mark.parametrize(
    ("bits", "title"),
    [((14.2, 14.2), "Each of 2 people: at least 14.2 bits, at most 50 in a million"),
     ((3.0, 11.3), "S1, the most exposed of 2 people: 11.3 bits, about 400 in a million")],
)  # fmt: skip
def test_several_people_get_an_answer_levels_in_words_and_a_cap(bits, title):
    rule = {"rule": "bits>6", "field": "bits", "threshold": 6.0, "level": "alert",
            "hold_seconds": 5.0, "least_speech_seconds": 0.0}  # fmt: skip
    labels = [{"label": f"S{k}", "seconds": 9.0} for k in (0, 1)]
    records = [
        start(watch="4088", people=labels, alerts=[rule]),
        *(told(t, bits[t % 2], label=f"S{t % 2}") for t in range(1, 20)),
        {"type": "end", "seconds": 20.0, "overlap_seconds": 0.004},
    ]
    text = words_of(draw_run(events(records)))
    assert title in text
    for words in ("calibration supports no more than 14.2 bits", "10 bits: 1 in 1,000",
                  "no evidence", "alert above 6 bits"):  # fmt: skip
        assert words in text
    assert "overlapping" not in text  # less than is shown


def test_a_curve_is_thick_while_its_person_speaks():
    records = [r for r in meeting(2) if r.get("label") != "S1" or r["type"] != "reading"]
    for record in records:
        if record["type"] == "reading" and record["seconds"] > 30:
            record["label"] = "S1"
            record["seconds"] = record["seconds"] / 2 + 15  # every second: nobody pauses
    axes = draw_run(events(records)).axes[0]
    thick = [line for line in axes.lines if line.get_linewidth() > 2]
    alone, without = (np.isfinite(np.asarray(line.get_ydata())) for line in thick)
    assert not alone.all()  # S0 speaks every other second
    assert without.all()


def test_of_several_watched_the_curve_is_by_the_one_matched():
    by_row = make_curves(events(meeting(2, ("ann", "bob"))))[0]
    assert by_row.bits[0] == pytest.approx(0.02)
    assert by_row.alerts == [(30.0, 2.0)]
    unfinished = make_curves(events(meeting(2, ("ann", "bob"), end=False)))[0]
    assert unfinished.bits[0] == pytest.approx(1.02)
