"""Frames in files: what is written is read, with the stretches that it is of; and what is none."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import SourceError, UsageError
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.protocols import Source
from monitor.sources import Chain, Paced
from monitor.sources.frames import FramesFile, write_frames
from monitor.types import Frames, Track

BINS = np.array([1, 2, 3])
SPEECH = np.ones(1500, np.bool_)
TICKS = np.array([40, 40, 700, 1500])
VALUES = np.array([7, 250, 7, 0])
SPANS = np.array([[3, 9], [9, 40], [650, 700], [0, 1400]])
SIZES, SECONDS = {"phones": 256}, {"phones": 0.1}


def gathered(source: FramesFile):
    """Speech, ticks and values of each feature, and gaps, of a whole source."""
    runs = list(source)
    assert all(isinstance(run, Frames) and len(run.speech) <= 1000 for run in runs)
    before = 0
    for run in runs:
        for track in run.tracks.values():
            assert ((track.ticks > before) & (track.ticks <= before + len(run.speech))).all()
        before += len(run.speech)
    speech = np.concatenate([run.speech for run in runs])
    tracks = {
        name: (
            np.concatenate([run.tracks[name].ticks for run in runs]),
            np.concatenate([run.tracks[name].values for run in runs]),
        )
        for name in source.stream_info.tracks
    }
    return speech, tracks, [gap for run in runs for gap in run.gaps]


def spans_of(source):
    runs = [run.tracks["phones"] for run in source]
    assert all(track.spans.shape == (len(track.ticks), 2) for track in runs)
    return np.concatenate([track.spans for track in runs])


def lines(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def test_what_is_written_is_read(tmp_path):
    rng = np.random.default_rng(0)
    speech = rng.random(2345) < 0.6
    ticks = np.sort(rng.integers(1, 2346, 700))
    values = rng.integers(0, 107, 700)
    vectors = rng.standard_normal((5, 8)).astype(np.float32)
    identity = Track(np.array([300, 1000, 1001, 2000, 2345]), vectors)
    path = tmp_path / "a.npz"
    sizes, seconds = {"f0": 107, "identity": 8}, {"f0": 0.01, "identity": 3.0}
    write_frames(path, speech, {"f0": Track(ticks, values), "identity": identity}, sizes, seconds)
    source = FramesFile(path, recording=3)
    assert isinstance(source, Source)
    assert (source.label, source.seconds) == ("a.npz", 23.45)
    assert source.stream_info.tracks == {
        "f0": FeatureSpec("f0", HISTOGRAM, 107, 0.01),
        "identity": FeatureSpec("identity", EMBEDDING, 8, 3.0),
    }
    assert (source.header.sizes, source.header.frame_seconds) == (sizes, seconds)
    heard, found, gaps = gathered(source)
    np.testing.assert_array_equal(heard, speech)
    np.testing.assert_array_equal(found["f0"], (ticks, values))
    np.testing.assert_array_equal(found["identity"][1], vectors)
    assert gaps == []
    assert all(run.tracks["f0"].spans is None for run in source)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]


def test_defaults_of_an_npz(tmp_path):
    np.savez(tmp_path / "a.npz", f0=np.array([5, 6, 7], np.uint8))
    speech, tracks, _ = gathered(FramesFile(tmp_path / "a.npz"))
    assert speech.tolist() == [True] * 3
    assert tracks["f0"][0].tolist() == [1, 2, 3]
    np.savez(tmp_path / "b.npz", e=np.ones((2, 3)), e_ticks=[4, 9])
    source = FramesFile(tmp_path / "b.npz")
    assert source.seconds == 0.09
    assert source.stream_info.tracks == {"e": FeatureSpec("e", EMBEDDING, 3, 0.01)}


def test_unusable_frames_become_gaps_at_their_tick(tmp_path):
    vectors = np.ones((6, 2))
    vectors[1, 0], vectors[2, 1], vectors[5] = np.nan, np.inf, -np.inf
    bins = np.array([3, -1, 4, 200, 5, 6])
    header = {"schema": 1, "sizes": {"f0": 107}, "frame_seconds": {"e": 0.5}}
    np.savez(
        tmp_path / "a.npz", f0=bins, e=vectors, e_ticks=np.arange(1, 7), header=json.dumps(header)
    )
    _, tracks, gaps = gathered(FramesFile(tmp_path / "a.npz", recording=2))
    assert tracks["f0"][1].tolist() == [3, 4, 5, 6]
    assert tracks["e"][0].tolist() == [1, 4, 5]
    assert {gap.recording for _, gap in gaps} == {2}
    assert sorted((tick, gap.reason, gap.lost_seconds) for tick, gap in gaps) == [
        (2, "not a bin", 0.01),
        (3, "not finite", 1.0),
        (4, "not a bin", 0.01),
        (6, "not finite", 0.5),
    ]


def test_spans_are_kept_and_a_dropped_frame_loses_its_own_length(tmp_path):
    path = tmp_path / "a.npz"
    write_frames(path, SPEECH, {"phones": Track(TICKS, VALUES, SPANS)}, SIZES, SECONDS)
    source = FramesFile(path)
    assert spans_of(source).tolist() == SPANS.tolist()
    chain = Chain([source, FramesFile(path)])
    paced = Paced(chain, 9.0, clock=lambda: 0.0, sleep=lambda _: None)
    for each in (chain, paced):
        assert spans_of(each).tolist() == [*SPANS.tolist(), *(SPANS + 1500).tolist()]
    bad = np.array([7, 256, 300, 0])
    write_frames(path, SPEECH, {"phones": Track(TICKS, bad, SPANS)}, SIZES, SECONDS)
    source = FramesFile(path)
    assert spans_of(source).tolist() == [[3, 9], [0, 1400]]
    (tick, gap), *rest = [gap for run in source for gap in run.gaps]
    assert (tick, gap.lost_seconds, rest) == (700, 0.81, [])


def _npz(**arrays: Any) -> Any:
    return lambda path: np.savez(path, **arrays)


def _array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, BINS)


NO_SPANS = {
    "4 pairs of integers": [SPANS[:3], SPANS / 1.0, SPANS[:, 0]],
    r"stretches \[begin, end\)": [SPANS[:, ::-1], SPANS - 1],
    "end by the frame's tick": [np.where(SPANS == 40, 41, SPANS)],
}


MALFORMED: dict[str, list[Any]] = {
    "no such file": [lambda _: None],
    "folder": [Path.mkdir],
    "not a zip": [_array],
    "not a file of frames": [
        Path.touch,
        lambda path: path.write_text("hello"),
        lambda path: path.write_bytes(b"PK\3\4" + os.urandom(300)),
        _npz(f0=np.array([{}, {}], object)),
        _npz(f0=BINS, header="{"),
    ],
    "has no frames": [_npz()],
    "no frames: .* population": [_npz(header=np.frombuffer(b"{}", np.uint8))],
    "must be integer bins": [
        *(_npz(f0=np.zeros(shape)) for shape in (3, (3, 0))),
        *(_npz(f0=array) for array in (np.zeros((3, 2), int), np.array(3), np.array(["a", "b"]))),
    ],
    "must not decrease": [_npz(f0=BINS, f0_ticks=ticks) for ticks in ([3, 2, 4], [0, 2, 4])],
    "must be 3 integers": [
        _npz(f0=BINS, f0_ticks=[1, 2]),
        _npz(f0=BINS, f0_ticks=[1.0, 2.0, 3.0], speech=np.ones(3, bool)),
    ],
    "7 days": [_npz(f0=BINS, f0_ticks=[1, 2, 10**12])],
    "3 frames for 2 ticks": [_npz(f0=BINS, speech=np.ones(2, bool))],
    "lie in 1 to 2": [_npz(f0=BINS, f0_ticks=[1, 2, 3], speech=np.ones(2, bool))],
    "speech must be": [
        _npz(f0=BINS, speech=speech) for speech in (np.array([0.5, 1, 1]), np.ones((3, 1), bool))
    ],
    "no duration": [_npz(f0=np.zeros(0, int))],
    "belongs to no feature": [_npz(f0=BINS, x_ticks=BINS), _npz(f0=BINS, x_spans=SPANS)],
    "schema 1": [_npz(f0=BINS, header=header) for header in ('{"schema": 2}', "[]")],
    "one JSON string": [_npz(f0=BINS, header=np.array([1]))],
    "must be objects": [_npz(f0=BINS, header='{"schema": 1, "sizes": []}')],
    "positive integer": [_npz(f0=BINS, header='{"schema": 1, "sizes": {"f0": 0}}')],
    "positive seconds": [_npz(f0=BINS, header='{"schema": 1, "frame_seconds": {"f0": NaN}}')],
    r"of a\? must be positive": [
        _npz(f0=BINS, header='{"schema": 1, "frame_seconds": {"a\\u001b": 0}}')
    ],
    "has 2 dimensions, but its header states 3": [
        _npz(e=np.ones((3, 2)), header='{"schema": 1, "sizes": {"e": 3}}')
    ],
    **{
        words: [_npz(phones=VALUES, phones_ticks=TICKS, phones_spans=each) for each in spans]
        for words, spans in NO_SPANS.items()
    },
}


@pytest.mark.parametrize(
    ("make", "words"), [(make, words) for words, makes in MALFORMED.items() for make in makes]
)
def test_malformed_npz_is_one_line(tmp_path, make, words):
    path = tmp_path / "a.npz"
    make(path)
    with pytest.raises(SourceError, match=words) as caught:
        FramesFile(path)
    assert "\n" not in str(caught.value)
    assert "a.npz" in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_json_lines(tmp_path):
    path = lines(
        tmp_path / "a.jsonl",
        {"schema": 1, "sizes": {"f0": 107}, "frame_seconds": {"e": 3.0}},
        {"seconds": 0.01, "speech": True, "f0": 57},
        {"seconds": 0.02, "speech": False, "f0": None},
        "",
        {"seconds": 0.05, "f0": 58, "e": [1, 2.5]},
        {"seconds": 0.05, "f0": 59},
        '{"seconds": 0.07, "e": [NaN, 1], "f0": -3}',
    )
    source = FramesFile(path)
    speech, tracks, gaps = gathered(source)
    bins, vectors = FeatureSpec("f0", HISTOGRAM, 107, 0.01), FeatureSpec("e", EMBEDDING, 2, 3.0)
    assert source.stream_info.tracks == {"f0": bins, "e": vectors}
    assert speech.tolist() == [True, False, True, True, True, True, True]
    assert [column.tolist() for column in tracks["f0"]] == [[1, 5, 5], [57, 58, 59]]
    assert tracks["e"][1].tolist() == [[1.0, 2.5]]
    told = [(tick, gap.reason, gap.lost_seconds) for tick, gap in gaps]
    assert told == [(7, "not a bin", 0.01), (7, "not finite", 3.0)]


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(1, 900), st.booleans(), st.integers(0, 50)), min_size=1, max_size=30
    )
)
def test_json_lines_equal_npz(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("frames")
    ticks = np.cumsum([step for step, _, _ in rows])
    speech = np.repeat([spoken for _, spoken, _ in rows], [step for step, _, _ in rows])
    values = np.array([value for _, _, value in rows])
    spans = np.stack([ticks - 1, ticks], axis=1)
    rendered = [
        {
            "seconds": end / 100,
            "speech": spoken,
            "f0": value,
            "f0_span": [(end - 1) / 100, end / 100],
        }
        for end, (_, spoken, value) in zip(ticks.tolist(), rows, strict=True)
    ]
    path = lines(folder / "a.jsonl", {"schema": 1, "sizes": {"f0": 60}}, *rendered)
    track = {"f0": Track(ticks, values, spans)}
    write_frames(folder / "a.npz", speech, track, {"f0": 60}, {"f0": 0.01})
    one, two = FramesFile(path), FramesFile(folder / "a.npz")
    assert (one.stream_info.tracks, one.seconds) == (two.stream_info.tracks, two.seconds)
    (speech1, tracks1, _), (speech2, tracks2, _) = gathered(one), gathered(two)
    np.testing.assert_array_equal(speech1, speech2)
    np.testing.assert_array_equal(tracks1["f0"], tracks2["f0"])
    spans1, spans2 = (np.concatenate([run.tracks["f0"].spans for run in x]) for x in (one, two))
    np.testing.assert_array_equal(spans1, spans2)


BAD_ROWS: dict[str, list[Any]] = {
    "line 2 is not a JSON object": ["nonsense", "[1]", "[" * 50_000],
    'needs "seconds"': [{"f0": 3}, {"seconds": True}, '{"seconds": NaN}'],
    "7 days": [{"seconds": 1e30}],
    "out of order": [{"seconds": 0.01}, {"seconds": -5}],
    "true or false": [{"seconds": 1, "speech": 1}],
    "integer bin or a list": [
        *({"seconds": 1, "f0": value} for value in (1.5, True, 10**30)),
        *({"seconds": 1, "e": value} for value in ([], ["a"])),
    ],
    "differ in length or kind": [{"seconds": 1, "f0": [1.0]}],
    "invalid feature name": [
        *({"seconds": 1, name: 1} for name in ("sizes", "schema", "q_ticks")),
        {"seconds": 1, "q_span": [0, 1]},
    ],
    r"line 2: q_span must be \[begin, end\]": [
        {"seconds": 1, "q": 1, "q_span": span}
        for span in ([0.5], [0.5, 0.5], [-0.5, 0.5], [0, True], [0, float("nan")])
    ],
    "end by the frame's tick": [{"seconds": 1, "q": 1, "q_span": [0, 1.5]}],
    "q_span for all its frames or none": [{"seconds": 1, "q": 1}],
}


@pytest.mark.parametrize(
    ("row", "words"), [(row, words) for words, rows in BAD_ROWS.items() for row in rows]
)
def test_malformed_line_is_named(tmp_path, row, words):
    first = {"seconds": 0.02, "f0": 1, "q": 3, "q_span": [0.01, 0.02]}
    path = lines(tmp_path / "a.jsonl", first, row)
    with pytest.raises(SourceError, match=words) as caught:
        FramesFile(path)
    assert "\n" not in str(caught.value)
    assert "a.jsonl" in str(caught.value)


@pytest.mark.parametrize(("file", "name"), [("a.npz", "a_ticks"), ("a.npy", "f0"), ("a.npz", "b")])
def test_what_could_not_be_read_again_is_not_written(tmp_path, file, name):
    with pytest.raises(UsageError):
        write_frames(tmp_path / file, SPEECH[:2], {name: Track(BINS, BINS)}, {name: 5}, {})
    assert list(tmp_path.iterdir()) == []
