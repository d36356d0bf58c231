"""The page to hear a voice before and after private tokens, made anew."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks.usc_heard import main
from monitor.anonymisers import protect
from monitor.features.phones import recognise_phones
from monitor.jobs import one_thread
from monitor.lab.utility import count_edits
from tests.sounds import RATE, synthetic


def heard_page(recording: Path, page: Path) -> dict[str, np.ndarray]:
    """The sounds of the page to listen to, by what was done to the voice."""
    with one_thread():
        main(recording, page)
    parts = re.findall(
        r'<h2>([^<]*)</h2>\s*<audio controls src="data:audio/wav;base64,([^"]*)">', page.read_text()
    )
    return {
        name: soundfile.read(io.BytesIO(base64.b64decode(held)), dtype="int16")[0]
        for name, held in parts
    }


@pytest.mark.slow
def test_a_voice_before_and_after_can_be_heard_and_is_what_monitor_protect_writes(tmp_path):
    recording = tmp_path / "talk.wav"
    soundfile.write(recording, synthetic(2.0), RATE)
    found = heard_page(recording, tmp_path / "heard.html")
    assert list(found) == [
        "As it is", "Its own spectra", "All 6 codebooks", "usc", "usc:15", "usc:5", "usc:1"
    ]  # fmt: skip
    assert np.array_equal(found["As it is"], soundfile.read(recording, dtype="int16")[0])
    for method in ("usc", "usc:5"):
        safe = tmp_path / "safe.wav"
        protect(recording, safe, method, name=recording.name, seed=0)
        again = soundfile.read(safe, dtype="int16")[0]
        assert np.abs(found[method] - again.astype(int)).max() <= 1  # another rounding to 16 bits


def test_a_reader_s_words_pass_and_noise_takes_them(shared, tmp_path):
    """Phones that our own recogniser hears, which taught the codec: benchmarks ask another one."""
    path = shared / "speech" / "dev-clean" / "1272" / "128104.opus"
    found = heard_page(path, tmp_path / "heard.html")
    with one_thread():
        heard = {
            name: [said.phone for said in recognise_phones(sound / 2**15)]
            for name, sound in found.items()
        }
    clear = heard["As it is"]
    shares = {name: count_edits(clear, phones) / len(clear) for name, phones in heard.items()}
    assert shares["Its own spectra"] < 0.15
    assert shares["Its own spectra"] < shares["All 6 codebooks"] < shares["usc"] < 0.75
    assert shares["usc"] < shares["usc:5"]
