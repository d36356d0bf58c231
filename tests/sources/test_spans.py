from __future__ import annotations

import json

import numpy as np
import pytest

from monitor.errors import SourceError, UsageError
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.sources import Chain, Paced
from monitor.sources.frames import FramesFile, write_frames
from monitor.types import Track

SPEECH = np.ones(1500, np.bool_)
TICKS = np.array([40, 40, 700, 1500])
VALUES = np.array([7, 250, 7, 0])
SPANS = np.array([[3, 9], [9, 40], [650, 700], [0, 1400]])
SIZES, SECONDS = {"phones": 256}, {"phones": 0.1}


def spans_of(source):
    runs = [run.tracks["phones"] for run in source]
    assert all(track.spans.shape == (len(track.ticks), 2) for track in runs)
    return np.concatenate([track.spans for track in runs])


def test_an_npz_keeps_them(tmp_path):
    path = tmp_path / "a.npz"
    f0 = Track(np.array([5]), np.array([1]))
    write_frames(path, SPEECH, {"phones": Track(TICKS, VALUES, SPANS), "f0": f0}, SIZES, SECONDS)
    source = FramesFile(path)
    assert source.stream_info.tracks == {
        "phones": FeatureSpec("phones", HISTOGRAM, 256, 0.1),
        "f0": FeatureSpec("f0", HISTOGRAM, 2, 0.01),
    }
    assert (source.header.sizes, source.header.frame_seconds) == (SIZES, SECONDS)
    assert spans_of(source).tolist() == SPANS.tolist()
    assert all(run.tracks["f0"].spans is None for run in source)


def test_a_chain_moves_them_and_pacing_keeps_them(tmp_path):
    path = tmp_path / "a.npz"
    write_frames(path, SPEECH, {"phones": Track(TICKS, VALUES, SPANS)}, SIZES, SECONDS)
    chain = Chain([FramesFile(path), FramesFile(path)])
    paced = Paced(chain, 9.0, clock=lambda: 0.0, sleep=lambda _: None)
    for source in (chain, paced):
        assert spans_of(source).tolist() == [*SPANS.tolist(), *(SPANS + 1500).tolist()]


def test_json_lines_give_the_same(tmp_path):
    write_frames(tmp_path / "a.npz", SPEECH, {"phones": Track(TICKS, VALUES, SPANS)}, SIZES, {})
    rows = [
        {"seconds": tick / 100, "phones": value, "phones_span": [begin / 100, end / 100]}
        for tick, value, (begin, end) in zip(
            TICKS.tolist(), VALUES.tolist(), SPANS.tolist(), strict=True
        )
    ]
    rows.insert(2, {"seconds": 1.0, "phones": None, "phones_span": None})
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, [{"schema": 1, "sizes": SIZES}, *rows])))
    one, two = FramesFile(path), FramesFile(tmp_path / "a.npz")
    assert one.stream_info.tracks == two.stream_info.tracks
    assert spans_of(one).tolist() == spans_of(two).tolist()


def test_a_dropped_frame_loses_its_own_length(tmp_path):
    bad = np.array([7, 256, 300, 0])
    write_frames(tmp_path / "a.npz", SPEECH, {"phones": Track(TICKS, bad, SPANS)}, SIZES, SECONDS)
    source = FramesFile(tmp_path / "a.npz")
    assert spans_of(source).tolist() == [[3, 9], [0, 1400]]
    (tick, gap), *rest = [gap for run in source for gap in run.gaps]
    assert (tick, gap.lost_seconds, rest) == (700, 0.81, [])


@pytest.mark.parametrize(
    ("spans", "words"),
    [
        (SPANS[:3], "4 pairs of integers"),
        (SPANS / 1.0, "4 pairs of integers"),
        (SPANS[:, 0], "4 pairs of integers"),
        (SPANS[:, ::-1], r"stretches \[begin, end\)"),
        (SPANS - 1, r"stretches \[begin, end\)"),
        (np.where(SPANS == 40, 41, SPANS), "end by the frame's tick"),
    ],
)
def test_nonsense_is_refused(tmp_path, spans, words):
    with pytest.raises(UsageError, match=words):
        write_frames(tmp_path / "a.npz", SPEECH, {"phones": Track(TICKS, VALUES, spans)}, SIZES, {})
    np.savez(tmp_path / "b.npz", phones=VALUES, phones_ticks=TICKS, phones_spans=spans)
    with pytest.raises(SourceError, match=words):
        FramesFile(tmp_path / "b.npz")


def test_spans_of_nothing_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", f0=VALUES, f0_ticks=TICKS, phones_spans=SPANS)
    with pytest.raises(SourceError, match="phones_spans belongs to no feature"):
        FramesFile(tmp_path / "a.npz")
    for name in ("a_spans", "a_span", "a_ticks"):
        with pytest.raises(UsageError, match="cannot be called"):
            write_frames(tmp_path / "b.npz", SPEECH, {name: Track(TICKS, VALUES)}, {}, {})


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"phones": 1, "phones_span": [0.5]}, r"line 2: phones_span must be \[begin, end\]"),
        ({"phones": 1, "phones_span": [0.5, 0.5]}, "phones_span must be"),
        ({"phones": 1, "phones_span": [-0.5, 0.5]}, "phones_span must be"),
        ({"phones": 1, "phones_span": [0, True]}, "phones_span must be"),
        ({"phones": 1, "phones_span": [0, float("nan")]}, "phones_span must be"),
        ({"phones": 1, "phones_span": [0, 1.5]}, "end by the frame's tick"),
        ({"phones": 1}, "phones_span for all its frames or none"),
        ({"phones_span": [0, 1]}, "cannot be called"),
        ({"phones_ticks": 4}, "cannot be called"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, row, words):
    first = {"seconds": 0.5, "phones": 3, "phones_span": [0.1, 0.2]}
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, [first, {"seconds": 1.0, **row}])))
    with pytest.raises(SourceError, match=words):
        FramesFile(path)
