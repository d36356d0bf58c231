"""A run with a protected side, two readings on one clock, and what is promised of its noise."""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import Monitor, Population
from monitor.alerts import Threshold
from monitor.anonymisers import Usc, Utterance
from monitor.anonymisers.laplace import Laplace, promises
from monitor.anonymisers.recording import protect
from monitor.errors import SourceError, StoreError, UsageError
from monitor.events.reading import ProtectedReading
from monitor.features import registry
from monitor.features.f0 import F0
from monitor.networks.usc import shipped_codec
from monitor.population.people import Speaker
from monitor.population.rank_model import RankModels
from monitor.protocols import Source
from monitor.run import LogFile, Protection, Run, RunSettings
from monitor.sinks.buffer import RunBuffer
from monitor.sources import AudioQueue, Chain, File, FramesFile, SideInputSource
from monitor.sources.frames import Header, write_frames
from monitor.stream.checkpoint import state_path
from monitor.tables import columns_of, flat
from monitor.types import Block, Track
from tests.contracts import voice
from tests.records import as_records, event, read_records
from tests.run.test_run import VALIDATOR, Dying, KilledError, fresh, items, lines, listed, ticking
from tests.stream.streams import (
    RATE,
    WATCHED,
    audio,
    readings,
    reference,
    run_through,
    simulated,
    sounds,
)
from tests.stream.test_beside import Style, population, said

SEEDED = Protection("mcadams:random", seed=7)


def heard(source: Any, protect: Any = None, **options: Any) -> list[dict[str, Any]]:
    """The records of a run, as they are written."""
    kept = RunBuffer()
    monitor = options.pop("monitor", None) or fresh()
    run_through(source, monitor, sinks=[kept], settings=RunSettings(protect=protect), **options)
    found: list[dict[str, Any]] = as_records(kept.events)
    for record in found:
        VALIDATOR.validate(record)
        record.pop("time", None)
    return found


def ignorant(record: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = record["protected"]["attackers"]["ignorant"]
    return told


def test_the_anonymiser_that_does_nothing_discloses_the_same_to_the_last_bit():
    found = readings(heard(listed(items()), "none"))
    assert len(found) == 11
    for record in found:
        assert record["protected"]["speech"] == record["speech"]
        for key, value in ignorant(record).items():
            assert value == record[key], key
        assert record["protected"]["by"] == "ignorant"
        assert record["protected"]["bits"] == record["bits"]


def test_the_clear_side_is_as_it_is_alone():
    both, alone = heard(listed(items()), SEEDED), heard(listed(items()))
    assert both[0].pop("protected")["method"] == "mcadams:random"
    assert both[-1].pop("disclosure_delay")
    both[0]["notices"] = alone[0]["notices"]
    for record in both:
        record.pop("protected", None)
    assert both == alone


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "again"), [("none", False), ("mcadams:0.8", False), ("noise:5", True)]
)
def test_each_side_leaves_out_what_it_has_had_before(method, again):
    """What an anonymiser makes into other audio each time is new to an attacker."""
    clip = voice(4.0)

    def spoken(times: int) -> tuple[float, float]:
        last = readings(heard(listed(audio(np.tile(clip, times))), Protection(method, seed=7)))[-1]
        return last["speech"], last["protected"]["speech"]

    (once, once_protected), (clear, protected) = spoken(1), spoken(5)
    assert clear == pytest.approx(once, rel=0.05)
    assert (protected > 2 * once_protected) == again
    assert again or protected == pytest.approx(once_protected, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("channel", [None, 2])
def test_the_protected_side_is_the_protected_recording(tmp_path, channel):
    """What is drawn goes by seed, name and channel, as in monitor protect."""
    names = ("a.wav", "b.wav")
    (tmp_path / "safe").mkdir()
    for name, pitch in zip(names, (1.0, 0.7), strict=True):
        stereo = np.stack([sounds(2.3), pitch * sounds(2.3)[::-1]], axis=1)
        soundfile.write(tmp_path / name, stereo, RATE, subtype="FLOAT")
        protect(tmp_path / name, tmp_path / "safe" / name, "mcadams:random", name=name, seed=7)

    def chain(folder: Path) -> Chain:
        return Chain([File(folder / name) for name in names])

    both = heard(chain(tmp_path), SEEDED, monitor=fresh(channel=channel))
    safe = heard(chain(tmp_path / "safe"), monitor=fresh(channel=channel))
    assert len(readings(both)) == len(readings(safe)) == 10
    for here, there in zip(readings(both), readings(safe), strict=True):
        assert here["seconds"] == there["seconds"]
        assert here["protected"]["speech"] == there["speech"]
        assert {k: there[k] for k in ignorant(here)} == ignorant(here)
    assert readings(both)[-1]["bits"] != readings(safe)[-1]["bits"]


@pytest.mark.slow
@settings(max_examples=4)
@given(step=st.sampled_from([160, 777, 4000, 100_000]))
def test_any_cutting_gives_the_same_records(step):
    noise = Protection("noise:6", seed=7)
    assert heard(listed(items(step)), noise) == heard(listed(items()), noise)


def go(path: Path, source: Any, kill: int | None) -> None:
    """Start or resume a run, and perhaps die at a record; nobody gives a seed."""
    begun = state_path(path).exists()
    run_through(
        source,
        fresh(),
        sinks=[RunBuffer() if kill is None else Dying(kill)],
        rules=[Threshold("protected.bits", -4.5, 0.5, 0.1)],
        log=LogFile(path, replace=not begun, resume=begun),
        settings=RunSettings(protect="mcadams:random", clock=ticking(0.6)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("kill", [4, 14])
def test_killed_and_resumed_the_file_is_the_same(tmp_path, monkeypatch, kill):
    drawn = iter([7, 7, 8])  # the last one would be another voice
    monkeypatch.setattr("monitor.anonymisers.recording.secrets.randbits", lambda _: next(drawn))
    go(tmp_path / "whole.jsonl", listed(items()), None)
    path = tmp_path / "run.jsonl"
    with pytest.raises(KilledError):
        go(path, listed(items(777)), kill)
    assert state_path(path).exists()
    go(path, listed(items()), None)
    assert lines(path) == lines(tmp_path / "whole.jsonl")
    assert any(record["type"] == "alert" for record in read_records(path))


def test_it_is_resumed_with_the_same_anonymiser_and_seed_alone(tmp_path):
    path = tmp_path / "run.jsonl"

    def begin(protect: Protection | None, kill: int | None) -> None:
        sinks = [] if kill is None else [Dying(kill)]
        log = LogFile(path, resume=state_path(path).exists())
        run_through(
            listed(items()), fresh(), sinks=sinks, log=log, settings=RunSettings(protect=protect)
        )

    with pytest.raises(KilledError):
        begin(SEEDED, 5)
    for other, words in (
        (None, "different: protect"),
        (Protection("none"), "different: protect"),
        (Protection("mcadams:random", reference(), seed=7), "different: protect"),
        (Protection("mcadams:random", seed=8), "anonymiser seed"),
    ):
        with pytest.raises(StoreError, match=words):
            begin(other, None)
    begin(SEEDED, None)
    assert read_records(path)[-1]["readings"] == 11


def voices() -> list[Block]:
    """One voice, then a much higher one."""
    samples = np.concatenate([sounds(40.0), sounds(40.0)[::2], sounds(20.0)[::2]])
    cut = np.split(samples.astype(np.float32), range(RATE, samples.size, RATE))
    return [Block(part, RATE) for part in cut]


@pytest.mark.slow
@pytest.mark.parametrize("on_change", ["note", "reset", "split"])
def test_a_change_of_speaker_holds_for_both_sides(on_change):
    """The identity anonymiser shows it: both sides begin afresh together, or doubt together."""
    monitor = fresh(on_change=on_change, step_seconds=1.0)
    found = heard(listed(voices()), "none", monitor=monitor)
    assert any(record["type"] == "change" for record in found)
    for record in readings(found):
        assert {k: record[k] for k in ignorant(record)} == ignorant(record)
        assert record["protected"]["speech"] == record["speech"]


def test_alerts_stand_on_the_side_that_they_name():
    names = ("bits", "protected.bits", "protected.bits_low")
    found = heard(
        listed(items()), "mcadams:0.8", rules=[Threshold(name, -4.5, 0.5) for name in names]
    )
    raised = {r["field"]: r for r in found if r["type"] == "alert" and r["state"] == "raised"}
    for record in readings(found):
        for field, alert in raised.items():
            if record["seconds"] == alert["seconds"]:
                side = record["protected"] if field.startswith("protected") else record
                assert alert["value"] == side[field.rpartition(".")[2]]
    assert {"bits", "protected.bits"} <= set(raised)
    with pytest.raises(UsageError, match="needs a protected side: add an anonymiser, or use bits"):
        heard(listed(items()), rules=[Threshold("protected.bits", 1.0)])
    with pytest.raises(UsageError, match=r"did you mean|the protected side has protected.bits"):
        Threshold("protected.evidence", 1.0)


def test_what_cannot_be_protected_is_refused(tmp_path):
    people = reference()
    others = [Speaker(f"{each.name}x") for each in people.speakers]
    renamed = Population(others, people.offsets, people.features, people.rank_models)
    wrong: list[tuple[Any, Any, dict[str, Any], str]] = [
        (listed([simulated(2.0)]), "none", {}, "frames, not audio that could be protected"),
        (AudioQueue(RATE), "command:cat", {}, "cannot work live: record, then replay"),
        (listed(items()), "mcadams", {}, "invalid setting"),
        (listed(items()), "hush:3", {}, "unknown anonymiser 'hush'"),
        (listed(items()), "none", {"ledger": tmp_path / "a.db"}, "a ledger adds up one voice"),
        (listed(items()), "none", {"monitor": Monitor(reference(), [F0()])}, "built-in features"),
        (listed(items()), Protection("none", renamed), {}, "has other people than the clear one"),
    ]
    for source, protection, options, words in wrong:
        with pytest.raises(UsageError, match=words):
            heard(source, protection, **options)
    assert list(tmp_path.iterdir()) == []


def test_the_figure_is_that_of_the_strongest_attacker_in_the_unit_of_the_headline():
    def read(closed: float | None, evidence: float | None, *, cut: bool = False) -> Any:
        figures: dict[str, Any] = {f"closed_set_bits{end}": closed for end in ("", "_low", "_high")}
        figures |= {f"evidence_bits{end}": evidence for end in ("", "_low", "_high")}
        figures |= {"bits": None, "bits_low": None, "bits_high": None, "support_bits": None}
        figures |= {"gain_bits": None, "gain_bits_low": None, "gain_bits_high": None}
        return SimpleNamespace(**figures, at_least=cut, speech=1.0)

    both = {"ignorant": read(1.0, 4.0), "lazy-informed": read(2.0, 3.0, cut=True)}
    evidence, closed = (
        ProtectedReading.from_readings(both, name) for name in ("evidence", "closed-set")
    )
    assert (evidence.bits, evidence.by, evidence.at_least) == (4.0, "ignorant", True)
    assert (closed.bits, closed.by, closed.at_least) == (2.0, "lazy-informed", False)
    withheld = ProtectedReading.from_readings({"ignorant": read(None, None)}, "evidence")
    assert (withheld.bits, withheld.by) == (None, None)
    # what one of them would read is not known: the other one's figure may be the smaller
    partly = {"ignorant": read(1.0, -14.0), "lazy-informed": read(2.0, None)}
    assert ProtectedReading.from_readings(partly, "evidence").bits is None


@pytest.mark.parametrize(("watch", "said"), [(None, True), (WATCHED, False)])
def test_of_a_confidence_no_seconds_are_disclosure_delay(watch, said):
    found = heard(listed(items()), "none", monitor=Monitor(reference(), watch=watch))
    assert any("Without a watched speaker" in notice for notice in found[0]["notices"]) == said
    assert (found[-1]["disclosure_delay"] == []) == said


def test_two_attackers_are_told_apart_and_have_one_headline():
    """An attacker without a rank model of evidence makes the closed-set figure that of both."""
    bare = reference().with_rank_models(
        RankModels(replace(rank_model, evidence=None) for rank_model in reference().rank_models)
    )
    # the same templates twice, and so equal figures; then without evidence
    for templates, headline in ((reference(), "evidence"), (bare, "closed-set")):
        start, *found = heard(listed(items()), Protection("noise:3", templates, seed=1))
        assert list(start["protected"]["attackers"]) == ["ignorant", "lazy-informed"]
        said = "".join(start["notices"])
        assert "with enrolled protected speech and one unaware" in said
        assert ("no rank model of evidence" in said) == (headline == "closed-set")
        assert start["headline"] == headline
        kind = headline.replace("-", "_") + "_bits"
        for record in readings(found):
            attackers = record["protected"]["attackers"]
            if templates is not bare:
                assert attackers["ignorant"] == attackers["lazy-informed"]
            assert record["headline"] == headline
            assert record["bits"] == record[kind]
            assert record["protected"]["bits"] == max(one[kind] for one in attackers.values())
        assert readings(found)[-1]["evidence_bits"] is not None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_program_is_heard_when_a_recording_is_over_and_keeps_the_clock_or_is_refused():
    code = (
        "import io, sys, soundfile as s, numpy as n; x, r = s.read(io.BytesIO(sys.stdin.buffer."
        "read())); o = io.BytesIO(); s.write(o, {}, r, format='WAV'); "
        "sys.stdout.buffer.write(o.getvalue())"
    )

    def by_program(made: str) -> list[dict[str, Any]]:
        program = shlex.quote(code.replace("{}", made))
        return heard(listed(items()), f"command:{sys.executable} -c {program}")

    alone = readings(heard(listed(items())))
    start, *_ = same = by_program("x")
    assert readings(same)[0]["protected"]["speech"] == alone[0]["speech"]
    assert (start["protected"]["latency_seconds"], start["protected"]["method"]) == (
        *(None, "command"),
    )
    assert any("readings wait" in notice for notice in start["notices"])
    assert readings(by_program("0 * x"))[-1]["protected"]["speech"] == 0
    shorter = readings(by_program("x[:-3000]"))
    assert [r["seconds"] for r in shorter] == [r["seconds"] for r in alone]
    with pytest.raises(SourceError, match=r"1\.0 s longer"):
        by_program("n.append(x, n.zeros(r))")


def test_live_both_sides_are_there_with_their_lag():
    queue = AudioQueue(RATE)
    queue.put(sounds(3.0))
    queue.put(np.zeros(0, np.float32), lost=True)
    queue.stop()
    found = heard(queue, "mcadams:0.8")
    assert [record["type"] for record in found].count("gap") == 1
    for record in readings(found):
        assert record["lag"] >= 0
        assert record["protected"]["bits"] is not None
    assert found[0]["protected"]["latency_seconds"] == pytest.approx(0.02, abs=1e-3)


@pytest.mark.parametrize(("method", "seconds"), [("none", 0.0), ("mcadams:0.8", 0.02)])
def test_readings_wait_for_the_latency_and_no_longer(method, seconds):
    def waits(protect: str | None) -> list[float]:
        taken = 0

        def paced() -> Iterator[Block]:
            nonlocal taken
            for block in audio(sounds(3.0), range(80, 48_000, 80)):
                taken += 80
                yield block

        with Run(listed(paced()), fresh(), settings=RunSettings(protect=protect)) as run:
            return [taken / RATE for record in run if record.type == "reading"][:-1]

    for both, alone in zip(waits(method), waits(None), strict=True):
        assert 0 <= both - alone <= seconds + 0.005


@pytest.mark.slow
@pytest.mark.parametrize("method", ["none", "mcadams:0.8", "noise:10"])
def test_words_are_the_same_on_both_sides(tmp_path, monkeypatch, method):
    monkeypatch.setattr(registry, "FEATURES", dict(registry.FEATURES))
    registry.register(Style)
    paths = tmp_path / "one.wav", tmp_path / "two.wav"
    for path, sound in zip(paths, np.split(voice(12.0), 2), strict=True):  # nothing repeats
        soundfile.write(path, sound, RATE)
    protect = Protection(method, seed=7)

    def own() -> Monitor:
        names = ["f0", "style"]
        return Monitor(population(), names, "ann", step_seconds=0.5, on_change="note")

    def twice(block: float = 0.7) -> Chain:
        """Two recordings, each with words of its own, some of which are known late."""
        return Chain([
            SideInputSource(File(path, block_seconds=block), words=said(n, late))
            for path, n, late in zip(paths, (12, 8), (30, 500), strict=True)
        ])  # fmt: skip

    def made(protect: Protection | None, block: float = 0.7) -> list[dict[str, Any]]:
        return heard(twice(block), protect, monitor=own())

    start, *_ = both = made(protect)
    assert any("the same on both sides" in notice for notice in start["notices"])
    if method == "none":
        assert all(ignorant(each)["bits"] == each["bits"] for each in readings(both))
    with Run(twice(), own(), settings=RunSettings(protect=protect)) as run:
        run.to_end()
        (other,) = run._side.pair.attackers.values()
        sums = [each.totals.totals["style"].tolist() for each in (run.monitor, other)]
    assert sums[0] == sums[1]
    assert sum(sums[0]) > 10
    plain = [{**each, "protected": None} for each in readings(made(None))]
    assert [{**each, "protected": None} for each in readings(both)] == plain
    assert readings(made(protect, 6.0)) == readings(both)


SECONDS = 60


def noisy_frames(path: Path, noise: str) -> FramesFile:
    """A minute of speech: an embedding each 3 s."""
    spec = Population.reference().features["voice"].spec
    values = np.random.default_rng(0).normal(size=(SECONDS // 3, spec.size))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    track = Track(300 * np.arange(1, SECONDS // 3 + 1), values.astype(np.float32))
    if noise:
        track = Track(track.ticks, Laplace.parse(noise.partition(":")[2]).noisy(track.values, 0))
    write_frames(
        path, np.ones(100 * SECONDS, bool), {"voice": track}, {"voice": spec.size}, {"voice": 3.0},
        networks={"voice": spec.network}, header=Header(noise=noise),
    )  # fmt: skip
    return FramesFile(path)


def told(source: Source, protect: Any = None, feature: str = "f0") -> list[dict[str, Any]]:
    monitor = Monitor(Population.reference(), [feature], watch="19")
    return heard(source, protect, monitor=monitor)


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    path = tmp_path_factory.mktemp("noisy") / "talk.npz"
    return told(noisy_frames(path, "laplace:2"), None, "voice")


def test_every_reading_says_what_is_promised_of_the_frames_so_far(noisy, tmp_path):
    start, *rest = noisy
    declared = {"mechanism": "laplace:2", "epsilon_nats": 2.0, "window_seconds": 3.0}
    assert start["declared"] == {**declared, "delta": 1e-4, "empty_after": 12}
    (said,) = [line for line in start["notices"] if "guarantees" in line]
    assert "laplace:2 guarantees epsilon 2 in each 3 s; after 12 of them, 36 s, the bound" in said
    assert "only the attackers tried" in said
    made = readings(rest)
    assert len(made) == SECONDS
    for reading in made:
        count = int(reading["seconds"]) // 3
        (known,) = promises({"": (count, 3.0 * count)}, 2.0)
        promise = reading["declared"]
        assert promise["windows"] == count
        assert promise["basic_nats"] == 2.0 * count
        assert promise["optimal_nats"] == pytest.approx(known.spent.optimal_nats)
        assert promise["most_bits"] == pytest.approx(known.most_bits)
        assert promise["empty"] == (count >= 12)
    # a table has it where there is any
    events = [event(record) for record in made]
    assert "declared.most_bits" in [column.name for column in columns_of(events)]
    assert flat(events[-1])["declared.windows"] == 20
    plain = [replace(reading, declared=None) for reading in events]
    assert not any(c.name.startswith("declared") for c in columns_of(plain))
    # and frames without noise promise nothing
    silent = told(noisy_frames(tmp_path / "talk.npz", ""), None, "voice")
    assert not any("declared" in record for record in silent)


@pytest.mark.slow
def test_of_a_protected_voice_every_token_of_every_channel_counts(tmp_path):
    stereo = np.stack([sounds(4.2), sounds(4.2)[::-1]], axis=1)
    for name in ("a.wav", "b.wav"):
        soundfile.write(tmp_path / name, stereo, RATE)
    source = Chain([File(tmp_path / name) for name in ("a.wav", "b.wav")])
    found = told(source, Protection("usc:0.01", seed=1))
    assert found[0]["declared"]["mechanism"] == "usc:0.01"
    declared = Usc(0.01, Utterance(RATE), shipped_codec()).declares
    readings = [record for record in found if record["type"] == "reading"]
    assert len(readings) == 9
    for reading in readings:
        begun = int(reading["seconds"] > 4.2)
        windows = 2 * (declared.windows(reading["seconds"]) + begun)
        assert reading["declared"]["windows"] == windows
        assert windows >= 2 * 25 * reading["seconds"]
        assert not reading["declared"]["empty"]
        assert reading["protected"]["attackers"]["ignorant"]


def test_a_live_voice_is_heard_through_its_tokens_and_nothing_is_promised_without_noise():
    for method, promised in (("usc", False), ("usc:15", True)):
        queue = AudioQueue(RATE)
        queue.put(sounds(3.0))
        queue.stop()
        found = told(queue, Protection(method, seed=1))
        readings = [record for record in found if record["type"] == "reading"]
        assert len(readings) == 3
        assert all(("declared" in reading) == promised for reading in readings)
        assert ("declared" in found[0]) == promised
        assert found[0]["protected"]["latency_seconds"] < 1
