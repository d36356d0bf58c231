"""What a source says that it was made of: which recordings, and which part of each."""

from __future__ import annotations

import io

import numpy as np
import soundfile

from monitor.protocols import Provenance
from monitor.sources import AudioQueue, Chain, File, FramesFile, Paced, Pipe
from monitor.sources.frames import Header, write_frames
from monitor.sources.registry import recording_hashes
from monitor.types import Track
from tests.sounds import RATE, synthetic


def test_every_kind_of_source_says_what_it_was_made_of(tmp_path):
    path, kept = tmp_path / "a.wav", tmp_path / "a.npz"
    soundfile.write(path, synthetic(2.0), RATE)
    hashes = recording_hashes(path)
    (whole,) = File(path).provenance()
    assert whole == Provenance("a.wav", hashes)
    part = File(path, start_seconds=0.5, end_seconds=1.5)
    assert part.provenance() == (Provenance("a.wav", hashes, 0.5, 1.5),)
    track = {"f0": Track(np.arange(1, 11), np.arange(10))}
    write_frames(
        kept, np.ones(10, bool), track, {"f0": 107}, {"f0": 0.01}, header=Header(hashes=hashes)
    )
    (frames,) = FramesFile(kept).provenance()
    assert frames.label == "a.npz"
    assert set(hashes) < set(frames.hashes)  # of the file itself, and of what was heard
    raw = (RATE, 1, "s16le")
    pipe = Pipe(io.BytesIO(bytes(320)), raw=raw)
    assert pipe.provenance() == (Provenance("-", raw=raw),)
    chain = Chain([part, pipe])
    assert chain.provenance() == (*part.provenance(), *pipe.provenance())
    assert Paced(chain, 2.0).provenance() == chain.provenance()
    assert list(Paced(chain, 2.0).labels) == ["a.wav", "-"]


def test_a_chain_of_what_nobody_knows_again_says_nothing():
    queue = AudioQueue(RATE)
    assert Chain([queue]).provenance() is None
    assert Paced(queue, 1.0).provenance() is None
