"""monitor protect --method tokens: recordings as noisy private tokens, and what they promise."""

from __future__ import annotations

import csv
import math
import stat
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.features.framing import join_runs
from monitor.features.phones import Tokens
from monitor.networks.usc import shipped_codec
from monitor.sources import FramesFile
from tests.contracts import babble
from tests.sounds import RATE


@pytest.fixture
def voices(tmp_path: Path) -> Path:
    for name in ("ann/one.flac", "ann/two.flac", "bob/three.wav"):
        path = tmp_path / "voices" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, babble(20, pause_seconds=0.3), RATE)
    return tmp_path / "voices"


def tokens(path: Path) -> np.ndarray:
    return np.asarray(join_runs(list(FramesFile(path))).tracks["tokens"].values)


def test_recordings_become_frames_of_noisy_tokens_and_nothing_else(run, voices, tmp_path):
    noisy = tmp_path / "noisy"
    done = run("protect", voices, "-o", noisy, "--method", "tokens:0.02", "--seed", "7")
    assert done.code == 0, done.err
    for name in ("ann/one", "ann/two", "bob/three"):
        path = noisy / f"{name}.npz"
        source = FramesFile(path)
        assert list(source.stream_info.tracks) == ["tokens"]
        assert source.header.noise == "tokens:0.02"
        assert not source.header.hashes
        assert source.stream_info.tracks["tokens"] == Tokens().spec  # clear templates can read them
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    feature = Tokens()
    clear = feature.process(babble(20, pause_seconds=0.3)).values.tolist()
    clear += feature.flush().values.tolist()
    assert len(tokens(noisy / "ann/one.npz")) == len(clear)
    assert np.mean(tokens(noisy / "ann/one.npz") == clear) < 0.2
    # each recording has noise of its own, though the sound is the same
    assert not np.array_equal(tokens(noisy / "ann/one.npz"), tokens(noisy / "ann/two.npz"))


def test_what_is_promised_is_told_and_kept(run, voices, tmp_path):
    done = run("protect", voices, "-o", tmp_path / "out", "--method", "tokens:0.02")
    with (tmp_path / "out/accounting.csv").open() as file:
        ann, bob = csv.DictReader(file)
    count = sum(len(tokens(tmp_path / f"out/ann/{name}.npz")) for name in ("one", "two"))
    assert int(ann["frames"]) == count == 2 * int(bob["frames"])
    assert float(ann["basic_nats"]) == pytest.approx(0.02 * count)
    assert float(ann["most_evidence_bits"]) == pytest.approx(0.02 * count / math.log(2), rel=1e-4)
    assert float(ann["noise_scale"]) == pytest.approx(100 * shipped_codec().books.clip, rel=1e-4)
    assert "epsilon 0.02 a token" in done.err
    assert f"all {count} tokens of ann" in done.err
    assert "no attacker has more than" in done.err


@pytest.mark.parametrize("setting", ["tokens", "tokens:", "tokens:much"])
def test_a_setting_that_is_none_is_told_with_one_that_is(run, voices, tmp_path, setting):
    done = run("protect", voices, "-o", tmp_path / "out", "--method", setting)
    assert done.code == 2
    assert "tokens:15" in done.complaint
    assert "monitor enrol --features tokens --frames DIR" in done.complaint
    assert not (tmp_path / "out").exists()


def test_tokens_are_no_method_for_sound(run, voices, tmp_path):
    done = run("replay", voices / "ann/one.flac", "--protect", "tokens:15")
    assert done.code == 2
    assert "tokens are no audio" in done.complaint
    assert run("protect", voices, "-o", tmp_path / "once", "--method", "tokens:15").code == 0
    done = run("protect", tmp_path / "once", "-o", tmp_path / "out", "--method", "tokens:15")
    assert done.code == 2
    assert "made of recordings, not of frames" in done.complaint
