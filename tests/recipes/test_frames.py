"""Folders of frames that a recipe need not make again."""

import json

import numpy as np
import soundfile

from monitor.training.frames_folder import ExtractionOptions, ExtractionTask, keep
from recipes.frames import CONDITIONS, is_complete
from tests.sounds import RATE, synthetic


def test_frames_without_the_starts_of_today_are_made_again(tmp_path):
    soundfile.write(tmp_path / "ann.wav", synthetic(3.0), RATE)
    folder = tmp_path / "frames"
    order = ExtractionTask(tmp_path / "ann.wav", folder / "ann.npz", "ann", "1")
    assert [kept.problem for kept in keep([order], ExtractionOptions(("f0",)))] == [""]
    assert not is_complete(folder, ["f0"])
    (folder / CONDITIONS).write_text("{}")
    assert is_complete(folder, ["f0"])
    assert not is_complete(folder, ["f0", "phones"])
    with np.load(order.target) as file:
        arrays = dict(file)
    header = json.loads(arrays["header"].item())
    header["heard"].pop("starts")  # as an earlier version wrote it
    np.savez(order.target, **arrays | {"header": np.array(json.dumps(header))})
    assert not is_complete(folder, ["f0"])
