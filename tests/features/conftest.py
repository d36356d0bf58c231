"""Real readers for the features."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr
from numpy.typing import NDArray

READERS = (
    "train-clean-5/19/198.opus",
    "train-clean-5/118/47824.opus",
    "dev-clean/1272/128104.opus",
    "dev-clean/1993/147966.opus",
)


@pytest.fixture(scope="session")
def voices(shared: Path) -> list[NDArray[np.float32]]:
    """A minute of each of some real readers, at 8000 Hz."""
    found = []
    for reader in READERS:
        audio, rate = soundfile.read(shared / "speech" / reader, frames=60 * 16000, dtype="float32")
        found.append(soxr.resample(audio, rate, 8000))
    return found
