"""Is your voice changer enough? What attackers learn of voices through programs that people use.

apt-get install sox ffmpeg rubberband-cli soundstretch
pip install -e '.[peers,identity,vocoder]'
python -m benchmarks.voice_changers ../shared/speech OUT
"""

from __future__ import annotations

import argparse
import math
import pickle
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from monitor.adapting.adapted import Length
from monitor.attacks.attackers import CLEAR, Amounts, attacker_named
from monitor.attacks.delay import evidence_over_time
from monitor.attacks.scoreboard import ATTACKERS, Scoreboard, ScoreRow
from monitor.attacks.trying import AttackConfig, prepare, try_methods
from monitor.errors import MonitorError
from monitor.maths.statistics import median_seconds
from monitor.plots.attacks import plot_attacks
from monitor.version import __version__

CHANGERS = {
    "no voice changer": "none",
    "SoX, pitch -4": "command:sox -V1 -t wav - -t wav - pitch -400",
    "ffmpeg, asetrate": "command:ffmpeg -v error -i - -af "
    "asetrate=20160,aresample=16000,atempo=0.79365 -f wav -",
    "Rubber Band, pitch +4": "command:sh -c 'd=$(mktemp -d) && cat > $d/in.wav && "
    "rubberband -q -p 4 --formant $d/in.wav $d/out.wav && cat $d/out.wav; rm -r $d'",
    "SoundTouch, pitch +4": "command:soundstretch stdin stdout -pitch=4",
    "GlobaLeaks' vocoder": "command:python benchmarks/channel_vocoder.py",
    "chimera-voice, strong": "command:python benchmarks/chimera_voice.py",
    "WORLD, drawn": "voice:random",
    "WORLD, pitch +4": "pitch:4",
    "WORLD, whisper": "whisper",
    "McAdams 0.8": "mcadams:0.8",
    "McAdams, drawn": "mcadams:random",
    "noise at 10 dB": "noise:10",
    "usc": "usc",
}
HOW = {
    "none": "nothing",
    "voice:random": "monitor protect --method voice:random",
    "pitch:4": "monitor protect --method pitch:4",
    "whisper": "monitor protect --method whisper",
    "mcadams:0.8": "monitor protect --method mcadams:0.8",
    "mcadams:random": "monitor protect --method mcadams:random",
    "noise:10": "monitor protect --method noise:10",
    "usc": "monitor protect --method usc",
}
DRAWN = (
    "McAdams, drawn",
    "WORLD, drawn",
    "usc",
    "GlobaLeaks' vocoder",
    "chimera-voice, strong",
)
"""With settings drawn for each recording, or learnt: where training pays most."""
LEVEL = 6.0
BACKGROUND = ("background", "train-clean-5", "train-clean-100")
INFORMED = ("ignorant", "lazy-informed")
STEPS = 60


def main() -> None:
    words = argparse.ArgumentParser(description="Voice changers under three attackers.")
    words.add_argument("speech", type=Path)
    words.add_argument("output", type=Path)
    words.add_argument("--training-steps", type=int, default=STEPS)
    words.add_argument("--attackers", default=",".join(ATTACKERS))
    words.add_argument("--write-only", action="store_true", help="what was measured so far")
    asked = words.parse_args()
    corpus, began = asked.speech / "dev-clean", time.monotonic()
    parts, kept = asked.output / "parts", asked.output / "kept"
    parts.mkdir(parents=True, exist_ok=True)
    config = AttackConfig(
        (CLEAR,), INFORMED, ("f0_robust", "phones", "voice"),
        Amounts(10.0, trials=4, least_segments=5, most_segments=5), (5,),
        training=Length(asked.training_steps),
    )  # fmt: skip

    def told(what: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {what}", file=sys.stderr, flush=True)

    def once(part: str, make: Callable[[], object]) -> None:
        path = parts / f"{part}.pickle"
        if not path.exists():
            try:
                made = make()
            except MonitorError as error:
                told(f"{part}: {error}")
                return
            path.write_bytes(pickle.dumps(made))
            told(f"{part}: done")

    if asked.write_only:
        write(asked.output, board_of(parts))
        return

    def informed(method: str) -> object:
        one = replace(config, methods=(method,))
        return try_methods(prepare(corpus, one, folder=kept), told=told)

    for name, method in CHANGERS.items():
        once(f"{name} informed", partial(informed, method))
    one = replace(config, attackers=("semi-informed",), features=("voice",))
    background = [asked.speech / name for name in BACKGROUND]
    ready = prepare(corpus, one, folder=kept, background=background)
    bench = replace(ready.bench, measures=())

    def seconds(method: str, attacker: str) -> object:
        return evidence_over_time(bench, method, attacker_named(attacker))

    def trained(method: str) -> object:
        asked = replace(ready.config, methods=(CLEAR, method))
        return try_methods(replace(ready, bench=bench, config=asked), told=told)

    for name, method in CHANGERS.items():
        for attacker in INFORMED if method != CLEAR else INFORMED[:1]:
            once(f"{name} {attacker} seconds", partial(seconds, method, attacker))
    trains = "semi-informed" in asked.attackers.split(",")
    for name in sorted(
        set(CHANGERS) - {"no voice changer"} if trains else (), key=lambda name: name not in DRAWN
    ):
        once(f"{name} trained", partial(trained, CHANGERS[name]))
        once(f"{name} semi-informed seconds", partial(seconds, CHANGERS[name], "semi-informed"))
    write(asked.output, board_of(parts))
    told("done")


def board_of(parts: Path) -> Scoreboard:
    """What was measured, as a table."""
    rows = []
    for name, method in CHANGERS.items():
        found = _part(parts, f"{name} informed")
        if found is None:
            continue
        row = ScoreRow.of(found, method, name, HOW.get(method, method.removeprefix("command:")))
        trained = _part(parts, f"{name} trained")
        if trained is not None:
            own = ScoreRow.of(trained, method)
            row = replace(
                row,
                bits={**row.bits, **own.bits},
                ways={**row.ways, **own.ways},
                undertrained=own.undertrained,
            )
        seconds: dict[str, float | None] = {}
        supported = True
        for attacker in ATTACKERS:
            followed = _part(parts, f"{name} {attacker} seconds")
            if followed is not None:
                crossings = followed.crossings(LEVEL)
                seconds[attacker] = median_seconds(crossings)
                supported &= bool(np.median(followed.support) >= LEVEL)
                row = replace(row, heard=max(float(each.seconds) for each in crossings))
        if not supported and not any(seconds.values()):
            seconds = {}  # that 6 bits were not seen says nothing where they could not be
        rows.append(replace(row, seconds=seconds))
    tried = {attacker for row in rows for attacker in row.bits}
    return Scoreboard(
        tuple(rows),
        (
            f"Measured with {__version__} on {rows[0].speakers} readers of LibriSpeech's "
            "dev-clean with two chapters, none of whom chose a setting or a network: "
            f"{rows[0].trials} trials of 10 s, templates of 30 s of another chapter; at most "
            f"{math.log2(rows[0].speakers):.0f} bits. Made by python -m benchmarks.voice_changers.",
            f"Attackers tried: {', '.join(each for each in ATTACKERS if each in tried)}.",
        ),
    )


def write(output: Path, board: Scoreboard) -> None:
    """All files of a table."""
    for name in ("scoreboard.json", "scoreboard.html", "scoreboard.md"):
        board.save(output / name)
    plot_attacks(output / "voice-changers.svg", *board.pictured())
    plot_attacks(output / "voice-changers.png", *board.pictured())


def _part(parts: Path, name: str) -> Any:
    path = parts / f"{name}.pickle"
    return pickle.loads(path.read_bytes()) if path.exists() else None


if __name__ == "__main__":
    main()
