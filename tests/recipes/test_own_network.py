"""One command makes a population for a network of one's own, with which evidence works."""

import json
import subprocess
import sys

import numpy as np
import pytest
import soundfile

from monitor.population.population import Population
from recipes.own_network import main
from tests.features.networks import of_sound
from tests.sounds import synthetic

pytest.importorskip("onnxruntime", reason="needs the extra onnx")


@pytest.mark.slow
def test_a_network_gets_templates_rank_models_and_evidence(tmp_path):
    for kind, count, pitch in (("people", 10, 90.0), ("others", 11, 96.0)):
        for person in range(count):
            for session in range(2 if kind == "people" else 1):
                path = tmp_path / kind / f"{kind[0]}{person}" / f"{session}.wav"
                path.parent.mkdir(parents=True, exist_ok=True)
                sound = synthetic(16.0, pitch + 13.5 * person + 2 * session)
                soundfile.write(path, np.asarray(sound, np.float32), 16_000)
    model, output = tmp_path / "mine.onnx", tmp_path / "us.npz"
    model.write_bytes(of_sound())
    asked = [model, tmp_path / "people", "-o", output, "--features", "f0,speaker"]
    few = ["--seconds", "8", "--lengths", "4", "--template-lengths", "8"]
    few += ["--cohort", str(tmp_path / "others")]
    assert main([*map(str, asked), *few]) == 0
    made = Population.load(output)
    f0, own = made.features
    assert own.startswith("speaker_")
    assert len(made) == 10
    models = {m.features: m for m in made.rank_models}
    assert {(f0,), (own,), (f0, own)} <= models.keys()
    assert all(each.evidence is not None for each in models.values())
    talk, records = tmp_path / "talk.wav", tmp_path / "talk.jsonl"
    soundfile.write(talk, np.asarray(synthetic(9.0, 93.0), np.float32), 16_000)
    replay = ["replay", talk, "-p", output, "--speaker-model", model, "--jsonl", records]
    replay += ["--watch", "p0"]
    subprocess.run([sys.executable, "-m", "monitor", *map(str, replay)], check=True)
    events = map(json.loads, records.read_text().splitlines())
    readings = [event for event in events if event["type"] == "reading"]
    assert own in readings[-1]["features"]
    assert any(reading["evidence_bits"] is not None for reading in readings)
