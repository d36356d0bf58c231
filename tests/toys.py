"""One toy of everything that CONTRIBUTING.md says how to add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["TOYS", "Toy"]


@dataclass(frozen=True)
class Toy:
    """One new part.

    Attributes:
        section: of CONTRIBUTING.md.
        name: what stands for NAME there.
        new: whole files.
        changed: what stands in a file, and what it becomes; more of them follow.
        made: files that a command writes anew, and the command.
        works: a program that shows that the part is there.
    """

    section: str
    name: str
    new: Mapping[str, str]
    changed: Mapping[str, tuple[str, ...]]
    made: Mapping[str, str]
    works: str


RUN = """
import json, subprocess, sys
from pathlib import Path
from monitor.population import demo_frames
def replay(*options):
    command = [sys.executable, "-m", "monitor", "replay", str(demo_frames()), "--features", "f0"]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
"""

EVALUATE = """
import json, subprocess, sys
import numpy as np
own = np.tile(np.eye(10), (4, 1))
np.save("scores.npy", np.random.default_rng(0).normal(size=(40, 10)) + 3 * own)
np.save("labels.npy", np.tile(np.arange(10), 4))
command = [sys.executable, "-m", "monitor", "evaluate", "scores.npy", "--labels", "labels.npy"]
def said(*options):
    return subprocess.run([*command, *options], capture_output=True, text=True, check=True).stdout
(system,) = json.loads(said("--json"))["systems"]
"""

FEATURE = Toy(
    "A feature",
    "loudness",
    {
        "monitor/features/loudness.py": '''"""How loud every 10 ms are."""

from __future__ import annotations

import numpy as np

from monitor.features.framing import Framer
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.kinds import Sensitivity
from monitor.types import FloatArray, Track

__all__ = ["Loudness"]


class Loudness:
    """Histogram feature: the level of every 10 ms, in steps of 3 dB."""

    spec = FeatureSpec("loudness", HISTOGRAM, size=20, frame_seconds=0.01, rate=8000)
    follow = Sensitivity(50, 200, 10.0, 0.01, back_units=20, held_units=4, min_units=3)

    def __init__(self) -> None:
        self.reset()

    def process(self, samples: FloatArray) -> Track:
        """The frames that these further samples, shape (n,), complete."""
        frames = self._framer.push(samples)
        ticks = self._heard + np.arange(1, len(frames) + 1)
        self._heard += len(frames)
        level = 10 * np.log10(np.mean(frames**2, axis=1) + 1e-6)
        bins = np.clip(20 + level // 3, 0, 19).astype(int)
        return Track(ticks[ticks > self._skip], bins[ticks > self._skip])

    def flush(self) -> Track:
        """Nothing: a frame that is cut short has no level."""
        return self.spec.no_frames()

    def skip_to(self, tick: int) -> None:
        """Frames up to there are not needed."""
        self._skip = tick

    def reset(self) -> None:
        """Begin a recording."""
        self._framer, self._heard, self._skip = Framer(80, 80), 0, 0
''',
    },
    {
        "monitor/features/registry.py": (
            '    "tokens": FeatureEntry(',
            """    "loudness": FeatureEntry(partial(_load_class, "loudness", "Loudness")),
    "tokens": FeatureEntry(""",
        ),
        "tests/contracts.py": (
            "from monitor.features.f0 import F0, RobustF0\n",
            "from monitor.features.f0 import F0, RobustF0\n"
            "from monitor.features.loudness import Loudness\n",
            '    "phones": FeatureCase(',
            """    "loudness": FeatureCase(Loudness, lambda: voice(3.0, 8000)),
    "phones": FeatureCase(""",
        ),
    },
    {},
    """
import subprocess, sys
from pathlib import Path
contracts = "-m pytest -q -p no:cacheprovider tests/test_contracts.py -k loudness"
subprocess.run([sys.executable, *contracts.split()], check=True)
import soundfile
from monitor import Population
from tests.sounds import RATE, synthetic
for name in ("ann", "bob"):
    Path("people", name).mkdir(parents=True)
    soundfile.write(Path("people", name, "1.wav"), synthetic(12.0), RATE)
command = "enroll people -o us.npz --features f0,loudness --seconds 5"
subprocess.run([sys.executable, "-m", "monitor", *command.split()], check=True)
templates = Population.load("us.npz").features
assert list(templates) == ["f0", "loudness"]
assert templates["loudness"].slices.sum() > 2 * 400
""",
)

METRIC = Toy(
    "A metric",
    "surplus",
    {
        "monitor/lab/evaluation/surplus.py": '''"""How far mated scores lie above."""

from __future__ import annotations

from monitor.lab.evaluation.family import EvaluationContext
from monitor.lab.evaluation.family import Family, FamilyResult, FigureEntry
from monitor.lab.report.model import Figure

__all__ = ["FAMILY"]


def _compute(context: EvaluationContext) -> FamilyResult:
    mated = context.pool.mated.mean()
    others = [block.ravel() for _, block in context.pool.non_mated_blocks()]
    rest = sum(each.sum() for each in others) / sum(each.size for each in others)
    return FamilyResult((Figure("surplus.mean", "mean surplus", float(mated - rest), ""),))


FAMILY = Family(
    key="surplus",
    place=45,
    title="How far mated scores lie above",
    caveat="A surplus says nothing of its spread.",
    needs=("pool",),
    figures=(FigureEntry("surplus", "surplus.mean", "mean mated less mean non-mated score"),),
    compute=_compute,
)
''',
    },
    {
        "monitor/lab/evaluation/family.py": (
            """    *("anonymity", "accounting"),""",
            """    *("anonymity", "accounting", "surplus"),""",
        ),
    },
    {
        "docs/metrics.md": "docs/check.py",
        "tests/stable.json": "tests/test_stable.py",
    },
    EVALUATE
    + """
assert abs(system["figures"]["surplus.mean"]["value"] - 3) < 0.5
assert "How far mated scores lie above" in said("--all")
assert "How far mated scores lie above (`surplus`)" in open("docs/metrics.md").read()
""",
)

FIGURE = Toy(
    "A figure of a family",
    "verification",
    {},
    {
        "monitor/lab/evaluation/verification.py": (
            """        figure("min_cllr_bits",""",
            """        figure("calibration_loss_bits", float(counts.costs.mean()) - calibrated),
        figure("min_cllr_bits",""",
            """        FigureEntry("min_cllr",""",
            """        FigureEntry("loss", "verification.calibration_loss_bits",
                    "what better calibration would save, bits", label="calibration loss",
                    unit="bits"),
        FigureEntry("min_cllr",""",
        ),
    },
    {
        "docs/metrics.md": "docs/check.py",
        "tests/stable.json": "tests/test_stable.py",
    },
    EVALUATE
    + """
found = {key: system["figures"][f"verification.{key}"]["value"]
         for key in ("cllr_bits", "min_cllr_bits", "calibration_loss_bits")}
assert abs(found["cllr_bits"] - found["min_cllr_bits"] - found["calibration_loss_bits"]) < 1e-5
assert "calibration loss" in said("--figures", "loss")
""",
)

SOURCE = Toy(
    "A source",
    "hum",
    {
        "monitor/sources/hum.py": '''"""A hum of five seconds, of any pitch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from monitor.protocols import StreamInfo
from monitor.sources.base import BaseSource
from monitor.types import Block

__all__ = ["Hum"]


class Hum(BaseSource[Block]):
    """Audio of a voice that hums."""

    def __init__(self, pitch: str) -> None:
        self.label, self._pitch = f"hum {pitch}", float(pitch)
        self.stream_info = StreamInfo(channels=1)
        self.seconds = 5.0

    def items(self) -> Iterator[Block]:
        """One block."""
        seconds = np.arange(5 * 16_000) / 16_000
        hum = np.sin(2 * np.pi * self._pitch * seconds + np.sin(2 * np.pi * 3 * seconds))
        yield Block(hum * 0.3, 16_000)
''',
    },
    {
        "monitor/sources/registry.py": (
            'register(\n    "-", lambda _',
            """def _hum(pitch: str) -> Source:
    from monitor.sources.hum import Hum

    return Hum(pitch)


register("hum:", _hum)
register(
    "-", lambda _""",
        ),
    },
    {},
    """
from monitor import Monitor, Population, sources
with sources.open_source("hum:120") as hum:
    last = [*Monitor(Population.reference(), ["f0"]).stream(hum)][-1]
assert (hum.label, last.seconds) == ("hum 120", 5.0)
assert last.features["f0"].usable > 3
import json, subprocess, sys
command = "-m monitor replay hum:120 --features f0 --jsonl -"
said = subprocess.run([sys.executable, *command.split()], capture_output=True, text=True).stdout
start, *_, end = map(json.loads, said.splitlines())
assert (start["recordings"], end["seconds"], end["complete"]) == (["hum 120"], 5.0, True)
""",
)

ACTION = Toy(
    "An alert action",
    "lamp",
    {
        "monitor/alerts/actions/lamp.py": '''"""An alert lights a lamp: a line in a file."""

from __future__ import annotations

import threading
from pathlib import Path

from monitor.events import Alert

__all__ = ["Lamp"]


class Lamp:
    """Writes down what happened."""

    label = "lamp"

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def deliver(self, alert: Alert, hurry: threading.Event) -> None:
        """Light it."""
        with self._path.open("a") as file:
            file.write(f"{alert.state} {alert.rule}\\\\n")
'''.replace("\\\\n", "\\n"),
    },
    {
        "monitor/alerts/actions/registry.py": (
            "ACTION_OPTIONS = (\n",
            """def _lamp(path: str) -> AlertReceiver:
    from monitor.alerts.actions.lamp import Lamp

    return Lamp(path)


ACTION_OPTIONS = (
    ActionOption("--lamp", "FILE", "Light the lamp behind this file.", _lamp),
""",
        ),
    },
    {"tests/stable.json": "tests/test_stable.py"},
    RUN
    + """
replay("--alert", "bits>0.5", "--lamp", "lamp.txt", "--jsonl", "run.jsonl")
assert "raised bits>0.5" in Path("lamp.txt").read_text()
assert "monitor replay --lamp" in Path("tests/stable.json").read_text()
""",
)

KEY = Toy(
    "A reading's key",
    "overlap_bits",
    {},
    {
        "monitor/events/reading.py": (
            "    peak_bits: float | None = key(",
            """    overlap_bits: float | None = key(
        "bits",
        "by how much the sum over the features is more than the headline",
        required=False,
        default=None,
    )
    peak_bits: float | None = key(""",
        ),
        "monitor/stream/reading_builder.py": (
            "            peak_bits=None if bits is None else self.peak,\n",
            """            overlap_bits=(
                None if bits is None else sum(part or 0.0 for part in parts) - bits.value
            ),
            peak_bits=None if bits is None else self.peak,
""",
        ),
    },
    {"tests/stable.json": "tests/test_stable.py"},
    RUN
    + """
from monitor.events import SCHEMA, read_run
(*_, reading, end) = replay("--jsonl", "-")
assert reading["type"] == "reading" and reading["overlap_bits"] == 0.0
(schema,) = [each for each in SCHEMA["oneOf"] if each["title"] == "reading"]
assert schema["properties"]["overlap_bits"]["type"] == ["number", "null"]
replay("--jsonl", "run.jsonl")
assert read_run("run.jsonl")[-2].overlap_bits == 0.0
text = Path("run.jsonl").read_text().replace('"overlap_bits":0.0', '"overlap_bits":"a"')
Path("bad.jsonl").write_text(text)
try:
    read_run("bad.jsonl")
except Exception as error:
    assert "overlap_bits of this reading" in str(error)
else:
    raise AssertionError("a key of another type was read")
from monitor.events.schema import RECORDS
assert any("| `overlap_bits` | by how much" in record.table for record in RECORDS)
""",
)

ANONYMISER = Toy(
    "An anonymiser",
    "upside",
    {
        "monitor/anonymisers/upside.py": '''"""Every sample with its sign turned, so quieter."""

from __future__ import annotations

import numpy as np

from monitor.anonymisers.filters import check_samples
from monitor.types import FloatArray

__all__ = ["Upside"]


class Upside:
    """Turns the sign of every sample."""

    latency_samples = 0

    def __init__(self, decibels: float, rate: int) -> None:
        self.rate, self._factor = rate, -(10 ** (-decibels / 20))

    def process(self, samples: FloatArray) -> FloatArray:
        """The samples, turned."""
        return np.asarray(self._factor * check_samples(samples), np.float32)

    def flush(self) -> FloatArray:
        """Nothing."""
        return np.empty(0, np.float32)

    def reset(self) -> None:
        """Nothing is remembered."""
''',
    },
    {
        "monitor/anonymisers/registry.py": (
            """utterance.timeout_seconds),
}""",
            """utterance.timeout_seconds),
}


def _upside(setting: str, utterance: Utterance) -> Anonymiser:
    from monitor.anonymisers.upside import Upside

    return Upside(_number(setting, "upside:6 (dB)"), utterance.rate)


register("upside", _upside)""",
        ),
        "tests/anonymisers/test_contracts_held.py": (
            'LIGHT = ("none", ',
            'LIGHT = ("upside:6", "none", ',
        ),
    },
    {},
    """
import subprocess, sys
import numpy as np
import soundfile
from tests.sounds import RATE, synthetic
contracts = [f"tests/anonymisers/test_{name}.py" for name in ("contracts_held", "registry")]
pytest = "-m pytest -q -p no:cacheprovider -k".split()
subprocess.run([sys.executable, *pytest, "upside or every or nobody", *contracts], check=True)
soundfile.write("talk.wav", synthetic(1.0), RATE, subtype="FLOAT")
command = "protect talk.wav -o safe.wav --method upside:6"
subprocess.run([sys.executable, "-m", "monitor", *command.split()], check=True)
turned = soundfile.read("safe.wav")[0] / soundfile.read("talk.wav")[0]
assert np.allclose(turned, -(10 ** -0.3), atol=1e-5)
""",
)

OPTION = Toy(
    "An option of a command",
    "replay",
    {},
    {
        "monitor/cli/replay.py": (
            '    each: BatchOptions = group(BatchOptions, "Many recordings")\n',
            """    farewell: str | None = option("--farewell TEXT", "Say this when it is over.")
    each: BatchOptions = group(BatchOptions, "Many recordings")
""",
            "        reporter.follow(run, view)\n",
            """        reporter.follow(run, view)
    if asked.farewell:
        say(asked.farewell)
""",
        ),
    },
    {"tests/stable.json": "tests/test_stable.py"},
    """
import subprocess, sys
from monitor.population import demo_frames
command = [sys.executable, "-m", "monitor", "replay"]
asked = [str(demo_frames()), "--features", "f0", "--farewell", "That was all."]
done = subprocess.run([*command, *asked], capture_output=True, text=True, check=True)
assert "That was all." in done.stderr
assert "--farewell TEXT" in subprocess.run(
    [*command, "--help"], capture_output=True, text=True, check=True
).stdout
""",
)

TOYS = (FEATURE, METRIC, FIGURE, SOURCE, ANONYMISER, ACTION, KEY, OPTION)
