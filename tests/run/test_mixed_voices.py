"""Every view of a recording in which another voice hides the watched one shows the larger figure.

Two women take turns: the watched one's stretches read more than the whole.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor import Monitor, Population, alerts, measure
from monitor.events import Alert
from monitor.ledger import Ledger, LedgerSession
from monitor.relay import CLEAR, Gate, RelayPath
from monitor.run import Run
from monitor.serve.session import ServeSettings
from monitor.serve.templates import TemplateFolder
from monitor.sinks.jsonl import JsonLines
from monitor.sources import AudioQueue, File, Samples
from monitor.stream.plan import MonitorSettings
from monitor.stream.totals import FeatureTotals, stack_totals
from monitor.types import Block, FloatArray

pytestmark = pytest.mark.slow
RATE = 16_000
WATCH, OTHER = "2035/152373", "1988/147956"
MORE_BITS = 3.0
"""More than of the whole."""


@pytest.fixture(scope="module")
def mixed(shared: Path) -> FloatArray:
    own, other = (
        soundfile.read(shared / f"speech/dev-clean/{name}.opus", stop=20 * RATE, dtype="float32")[0]
        for name in (WATCH, OTHER)
    )
    turns = [(other[k * 3 * RATE :][: 3 * RATE], own[k * 24_000 :][:24_000]) for k in range(4)]
    return np.concatenate([part for turn in turns for part in turn])


def watching(**options) -> Monitor:
    return Monitor(Population.reference(), watch=WATCH[:4], **options)


@pytest.fixture(scope="module")
def whole_bits(mixed: FloatArray) -> float:
    monitor = watching(settings=MonitorSettings(second_voice=False))
    *_, last = monitor.stream(mixed, rate=RATE)
    assert last.bits is not None
    return last.bits


def bits_of(totals: FeatureTotals) -> float:
    running, speech = stack_totals([totals])
    return float(watching().attacker.figures(running, speech / 100, {})["evidence_bits"][0])


def measured(mixed: FloatArray, _folder: Path) -> float:
    return measure(mixed, rate=RATE, watch=WATCH[:4]).readings[-1].bits or 0.0


def recorded(mixed: FloatArray, folder: Path) -> float:
    soundfile.write(folder / "mixed.wav", mixed, RATE)
    with Run(
        File(folder / "mixed.wav"), watching(), sinks=[JsonLines(folder / "run.jsonl")]
    ) as run:
        run.to_end()
    *_, reading, end = map(json.loads, (folder / "run.jsonl").read_text().splitlines())
    assert end["revealing_bits"] > MORE_BITS
    assert reading["bits"] == end["bits"]
    return float(end["bits"])


def live(mixed: FloatArray) -> AudioQueue:
    queue = AudioQueue(RATE, queue_seconds=60)
    queue.put(mixed)
    queue.stop()
    return queue


def alerted(mixed: FloatArray, _folder: Path) -> float:
    rule = alerts.Threshold("bits", 0.0, hold_seconds=0.0)
    with Run(live(mixed), watching(), rules=[rule]) as run:
        bits = [event.value or 0.0 for event in run if isinstance(event, Alert)]
    return max(bits)


def in_the_ledger(mixed: FloatArray, folder: Path) -> float:
    with Run(live(mixed), watching(), ledger=folder / "me.db") as run:
        run.to_end()
    later = watching()
    session = LedgerSession(Ledger(folder / "me.db"), later)
    bits = later.standing().bits or 0.0
    session.close()
    return bits


def charged(mixed: FloatArray, _folder: Path) -> float:
    monitor = watching(step_seconds=0.4)
    gate = Gate(1e6, [RelayPath(CLEAR, [monitor])], 0.4)
    monitor.push(Block(mixed, RATE))
    return bits_of(gate._total_sent(monitor))  # what it charges


def served(mixed: FloatArray, folder: Path) -> float:
    settings, sound = ServeSettings(TemplateFolder(folder)), Samples(mixed, RATE)
    *_, last = settings.monitor(sound, WATCH[:4], Population.reference()).stream(sound)
    return last.bits or 0.0


@pytest.mark.parametrize("view", [measured, recorded, alerted, in_the_ledger, charged, served])
def test_another_voice_hides_nothing(
    view: Callable[[FloatArray, Path], float], mixed: FloatArray, whole_bits: float, tmp_path: Path
):
    assert view(mixed, tmp_path) > whole_bits + MORE_BITS
