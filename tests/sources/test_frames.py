from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import SourceError, StoreError, UsageError
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.protocols import Source
from monitor.sources.frames import FramesFile, header_of, write_frames
from monitor.types import Frames, Track


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


def test_what_is_written_is_read(tmp_path):
    rng = np.random.default_rng(0)
    speech = rng.random(2345) < 0.6
    ticks = np.sort(rng.integers(1, 2346, 700))
    values = rng.integers(0, 107, 700)
    vectors = rng.standard_normal((5, 8)).astype(np.float32)
    tracks = {
        "f0": Track(ticks, values),
        "identity": Track(np.array([300, 1000, 1001, 2000, 2345]), vectors),
    }
    path = tmp_path / "a.npz"
    sizes, seconds = {"f0": 107, "identity": 8}, {"f0": 0.01, "identity": 3.0}
    write_frames(path, speech, tracks, sizes, seconds)
    source = FramesFile(path, recording=3)
    assert isinstance(source, Source)
    assert (source.label, source.seconds) == ("a.npz", 23.45)
    assert source.stream_info.tracks == {
        "f0": FeatureSpec("f0", HISTOGRAM, 107, 0.01),
        "identity": FeatureSpec("identity", EMBEDDING, 8, 3.0),
    }
    heard, found, gaps = gathered(source)
    np.testing.assert_array_equal(heard, speech)
    np.testing.assert_array_equal(found["f0"][0], ticks)
    np.testing.assert_array_equal(found["f0"][1], values)
    np.testing.assert_array_equal(found["identity"][1], vectors)
    assert gaps == []
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


def test_a_header_behind_a_byte_order_mark_counts(tmp_path):
    known = f"file:{'0' * 64}"
    line = json.dumps({"schema": 1, "sizes": {"f0": 10}, "hashes": [known]})
    (tmp_path / "a.jsonl").write_text(f"{line}\n", encoding="utf-8-sig")
    assert header_of(tmp_path / "a.jsonl").hashes == (known,)


def test_unusable_frames_become_gaps_at_their_tick(tmp_path):
    vectors = np.ones((6, 2))
    vectors[1, 0] = np.nan
    vectors[2, 1] = np.inf
    vectors[5] = -np.inf
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


def _npz(**arrays: Any) -> Any:
    return lambda path: np.savez(path, **arrays)


BINS = np.array([1, 2, 3])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda _: None, "no such file"),
        (Path.mkdir, "folder"),
        (Path.touch, "no file of frames"),
        (lambda path: path.write_text("hello"), "no file of frames"),
        (lambda path: path.write_bytes(b"PK\3\4" + os.urandom(300)), "no file of frames"),
        (_npz(f0=np.array([{}, {}], object)), "no file of frames"),
        (_npz(), "holds no frames"),
        (_npz(f0=np.zeros((3, 2), int)), "must be integer bins"),
        (_npz(f0=np.zeros(3)), "must be integer bins"),
        (_npz(f0=np.array(3)), "must be integer bins"),
        (_npz(f0=np.array(["a", "b"])), "must be integer bins"),
        (_npz(f0=np.zeros((3, 0))), "must be integer bins"),
        (_npz(f0=BINS, f0_ticks=[3, 2, 4]), "must not decrease"),
        (_npz(f0=BINS, f0_ticks=[0, 2, 4]), "must not decrease"),
        (_npz(f0=BINS, f0_ticks=[1, 2]), "must be 3 integers"),
        (_npz(f0=BINS, f0_ticks=[1.0, 2.0, 3.0], speech=np.ones(3, bool)), "must be 3 integers"),
        (_npz(f0=BINS, f0_ticks=[1, 2, 10**12]), "7 days"),
        (_npz(f0=BINS, speech=np.ones(2, bool)), "3 frames for 2 ticks"),
        (_npz(f0=BINS, f0_ticks=[1, 2, 3], speech=np.ones(2, bool)), "lie in 1 to 2"),
        (_npz(f0=BINS, speech=np.array([0.5, 1, 1])), "speech must be"),
        (_npz(f0=BINS, speech=np.ones((3, 1), bool)), "speech must be"),
        (_npz(f0=np.zeros(0, int)), "no time at all"),
        (_npz(f0=BINS, x_ticks=BINS), "belongs to no feature"),
        (_npz(f0=BINS, header="{"), "no file of frames"),
        (_npz(f0=BINS, header='{"schema": 2}'), "schema 1"),
        (_npz(f0=BINS, header="[]"), "schema 1"),
        (_npz(f0=BINS, header=np.array([1])), "one JSON string"),
        (_npz(header=np.frombuffer(b"{}", np.uint8)), "no frames: .* population"),
        (_npz(f0=BINS, header='{"schema": 1, "sizes": []}'), "must be objects"),
        (_npz(f0=BINS, header='{"schema": 1, "sizes": {"f0": 0}}'), "positive integer"),
        (_npz(f0=BINS, header='{"schema": 1, "frame_seconds": {"f0": NaN}}'), "positive seconds"),
        (
            _npz(f0=BINS, header='{"schema": 1, "frame_seconds": {"a\\u001b": 0}}'),
            r"of a\? must be positive",
        ),
        (
            _npz(e=np.ones((3, 2)), header='{"schema": 1, "sizes": {"e": 3}}'),
            "has 2 dimensions, its header says 3",
        ),
    ],
)
def test_malformed_npz_is_one_line(tmp_path, make, words):
    path = tmp_path / "a.npz"
    make(path)
    with pytest.raises(SourceError, match=words) as caught:
        FramesFile(path)
    assert "\n" not in str(caught.value)
    assert "a.npz" in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_single_array_and_pickle_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    with path.open("wb") as file:
        np.save(file, BINS)
    with pytest.raises(SourceError, match="not a zip"):
        FramesFile(path)


@pytest.mark.slow
@settings(max_examples=150)
@given(data=st.data())
def test_a_damaged_npz_is_read_or_refused(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("damaged") / "a.npz"
    tracks = {"f0": Track(np.arange(1, 101), np.arange(100))}
    write_frames(path, np.ones(100, bool), tracks, {"f0": 107}, {"f0": 0.01})
    content = bytearray(path.read_bytes())
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=8)):
        content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))] or content)
    try:
        list(FramesFile(path))
    except SourceError as error:
        assert "\n" not in str(error)  # noqa: PT017


def lines(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


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
    assert source.stream_info.tracks == {
        "f0": FeatureSpec("f0", HISTOGRAM, 107, 0.01),
        "e": FeatureSpec("e", EMBEDDING, 2, 3.0),
    }
    assert speech.tolist() == [True, False, True, True, True, True, True]
    assert tracks["f0"][0].tolist() == [1, 5, 5]
    assert tracks["f0"][1].tolist() == [57, 58, 59]
    assert tracks["e"][1].tolist() == [[1.0, 2.5]]
    assert [(t, g.reason, g.lost_seconds) for t, g in gaps] == [
        (7, "not a bin", 0.01),
        (7, "not finite", 3.0),
    ]


@given(
    st.lists(
        st.tuples(st.integers(1, 900), st.booleans(), st.integers(0, 50)), min_size=1, max_size=30
    )
)
@pytest.mark.slow
def test_json_lines_equal_npz(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("frames")
    tick, ticks, speech, rendered = 0, [], [], []
    for step, spoken, bin_ in rows:
        tick += step
        ticks.append(tick)
        speech += [spoken] * step
        rendered.append({"seconds": tick / 100, "speech": spoken, "f0": bin_})
    path = lines(folder / "a.jsonl", {"schema": 1, "sizes": {"f0": 60}}, *rendered)
    values = np.array([row[2] for row in rows])
    track = {"f0": Track(np.array(ticks), values)}
    write_frames(folder / "a.npz", np.array(speech), track, {"f0": 60}, {"f0": 0.01})
    one, two = FramesFile(path), FramesFile(folder / "a.npz")
    assert (one.stream_info.tracks, one.seconds) == (two.stream_info.tracks, two.seconds)
    (speech1, tracks1, _), (speech2, tracks2, _) = gathered(one), gathered(two)
    np.testing.assert_array_equal(speech1, speech2)
    np.testing.assert_array_equal(tracks1["f0"], tracks2["f0"])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("nonsense", "line 2: is no JSON object"),
        ("[1]", "no JSON object"),
        ("[" * 50_000, "no JSON object"),
        ({"f0": 3}, 'needs "seconds"'),
        ({"seconds": True}, 'needs "seconds"'),
        ('{"seconds": NaN}', 'needs "seconds"'),
        ({"seconds": 1e30}, "7 days"),
        ({"seconds": 0.01}, "out of order"),
        ({"seconds": -5}, "out of order"),
        ({"seconds": 1, "speech": 1}, "true or false"),
        ({"seconds": 1, "f0": 1.5}, "integer bin or a list"),
        ({"seconds": 1, "f0": True}, "integer bin or a list"),
        ({"seconds": 1, "f0": 10**30}, "integer bin or a list"),
        ({"seconds": 1, "e": []}, "integer bin or a list"),
        ({"seconds": 1, "e": ["a"]}, "integer bin or a list"),
        ({"seconds": 1, "f0": [1.0]}, "differ in length or kind"),
        ({"seconds": 1, "sizes": {}}, "cannot be called"),
        ({"seconds": 1, "schema": 1}, "cannot be called"),
    ],
)
def test_malformed_line_is_named(tmp_path, row, words):
    path = lines(tmp_path / "a.jsonl", {"seconds": 0.02, "f0": 1}, row)
    with pytest.raises(SourceError, match=words) as caught:
        FramesFile(path)
    assert "\n" not in str(caught.value)
    assert "a.jsonl" in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just(0.5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["seconds", "speech", "f0", "e", "schema"]), JSON),
        max_size=4,
    )
)
@pytest.mark.slow
def test_any_json_is_read_or_refused(tmp_path_factory, rows):
    path = lines(tmp_path_factory.mktemp("any") / "a.jsonl", *rows)
    try:
        list(FramesFile(path))
    except SourceError as error:
        assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"\n\n"])
def test_files_that_are_no_json_lines(tmp_path, content):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"a\.jsonl"):
        FramesFile(path)


def test_a_recorded_run_is_no_file_of_frames(tmp_path):
    path = lines(tmp_path / "run.jsonl", {"type": "start", "schema": 1}, {"type": "reading"})
    with pytest.raises(SourceError, match=r"run\.jsonl is a recorded run.*monitor show"):
        FramesFile(path)


def test_write_frames_refuses_nonsense(tmp_path):
    speech, track = np.ones(3, bool), Track(np.array([1, 2, 3]), BINS)
    for name in ("header", "a_ticks", "a b", "speech"):
        with pytest.raises(UsageError, match="cannot be called"):
            write_frames(tmp_path / "a.npz", speech, {name: track}, {}, {})
    with pytest.raises(UsageError, match=r"\.npz"):
        write_frames(tmp_path / "a.npy", speech, {"f0": track}, {}, {})
    with pytest.raises(UsageError, match="must not decrease"):
        write_frames(tmp_path / "a.npz", speech[:2], {"f0": track}, {"f0": 5}, {})
    with pytest.raises(StoreError, match=r"cannot write a\.npz"):
        write_frames(tmp_path / "no" / "a.npz", speech, {"f0": track}, {"f0": 5}, {})
    assert list(tmp_path.iterdir()) == []
