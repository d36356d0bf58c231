"""What the monitor does when another voice, or channel, takes over, and what it then says."""

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import jsonschema
import numpy as np
import pytest
from scipy.signal import butter, sosfilt

from monitor import Monitor
from monitor.alerts import Threshold
from monitor.errors import UsageError
from monitor.events.reading import Reading
from monitor.events.run import Change
from monitor.events.schema import SCHEMA
from monitor.kinds import adwin
from monitor.sinks.buffer import RunBuffer
from monitor.sources import Chain, FramesFile, write_frames
from monitor.sources.file import File
from monitor.sources.frames import Header
from monitor.stream.evidence import Mark, PrefixSums, pack_marks, unpack_marks
from monitor.stream.pair import create_twin
from monitor.stream.records import start_event
from monitor.stream.segments import SpeakerSegments
from monitor.stream.totals import FeatureTotals, Moments, stack_totals
from monitor.types import TICKS_PER_SECOND, AnyArray, Block, Frames, Item, Track
from tests.records import as_records
from tests.stream.streams import Listed, audio, frames, reference, resumed, run_through, told

FIRST, SECOND = "19", "1088"
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
TURN = 90  # seconds


@cache
def conversation(*turns: str) -> Frames:
    """Readers' pitch, one after the other, drawn from their templates."""
    population, generator = reference(), np.random.default_rng(4)
    templates = population.templates("f0", population.scoring())
    bins = []
    for name in turns:
        shares = templates[population.index(name)] / templates[population.index(name)].sum()
        bins.append(generator.choice(shares.size, 100 * TURN // 2, p=shares))
    ticks = np.arange(1, len(turns) * TURN * 100 + 1, 2)
    return Frames(
        np.ones(len(turns) * TURN * 100, bool), {"f0": Track(ticks, np.concatenate(bins))}
    )


def cut(every: int, *turns: str) -> Listed:
    whole = conversation(*(turns or (FIRST, SECOND)))
    return Listed(frames(whole, range(every, whole.speech.size, every)))


def events(
    on_change: str, every: int = 1000, watch: str | None = SECOND, turns: tuple[str, ...] = ()
) -> list[Any]:
    return list(Monitor(reference(), watch=watch, on_change=on_change).events(cut(every, *turns)))


@pytest.mark.parametrize("noise", ["", "laplace:30"])
def test_in_frames_with_noise_no_change_is_looked_for_and_that_is_said(tmp_path, noise):
    whole, path = conversation(FIRST, SECOND), tmp_path / "a.npz"
    header = Header(noise=noise)
    write_frames(path, whole.speech, whole.tracks, {"f0": 104}, {"f0": 0.01}, header=header)
    source = Chain([FramesFile(path)])
    one = Monitor(reference(), watch=SECOND, on_change="note")
    one.fit_to(source)
    said = " ".join(start_event(one, ["a"]).record()["notices"])
    assert ("these frames have noise (laplace:30)" in said) == bool(noise)
    assert any(isinstance(event, Change) for event in one.listen(source)) == (not noise)
    one.restore(*one.state())  # rests there as well


def readings(found: list[Any]) -> list[Reading]:
    return [event for event in found if isinstance(event, Reading)]


def changes(found: list[Any]) -> list[Change]:
    return [event for event in found if isinstance(event, Change)]


def test_nothing_is_looked_for_unless_asked():
    assert not changes(events("ignore"))
    with pytest.raises(UsageError, match="on_change='stop' must be one of ignore, note"):
        Monitor(reference(), on_change="stop")


def test_a_note_leaves_all_as_it_was_until_then():
    ignored, noted = events("ignore"), events("note")
    [change] = changes(noted)
    assert TURN < change.seconds < TURN + 20
    assert abs(change.since_seconds - TURN) < 10
    assert change.features == ("f0",)
    assert change.margin_after < change.margin_before
    made = [r.record() for r in readings(noted)]
    opened = [(r["seconds"], r.pop("change")) for r in made if "change" in r]
    before = [r for r in made if r["seconds"] < change.seconds]
    assert before == [r.record() for r in readings(ignored)][: len(before)]
    assert all("excluded_seconds" in r for r in made[len(before) :])
    # from the reading on with which it was noticed
    assert opened[0][0] == change.seconds
    assert len(opened) == 2 * TURN - change.seconds + 1
    since = {"since_seconds": change.since_seconds, "features": ["f0"]}
    assert all(each == since for _, each in opened)


@pytest.mark.parametrize("on_change", ["note", "reset", "split"])
def test_an_alert_does_not_stand_on_what_somebody_else_says(on_change):
    """The first reader is watched: with the second one what stands is over, whatever the bits."""
    kept, rule = RunBuffer(), Threshold("bits", 1.0)
    monitor = Monitor(reference(), watch=FIRST, on_change=on_change)
    run_through(cut(1000), monitor, sinks=[kept], rules=[rule])
    found = as_records(kept.events)
    (change,) = [r for r in found if r["type"] == "change"]
    raised, cleared, *later = [r for r in found if r["type"] == "alert"]
    assert on_change != "note" or not later  # fresh evidence may well raise it anew
    assert (raised["state"], raised["seconds"] < TURN) == ("raised", True)
    assert (cleared["state"], cleared["seconds"]) == ("cleared", change["seconds"])
    assert cleared["change"] == {key: change[key] for key in ("since_seconds", "features")}
    assert cleared["value"] > 1.0  # it is over because of the change alone


def test_reset_begins_the_evidence_afresh_and_keeps_the_peak():
    found = events("reset")
    [change] = changes(found)
    at = found.index(change)
    before, after = found[at + 1], found[at + 2]
    assert before.seconds == change.seconds
    assert before.speech == change.seconds
    assert after.speech == pytest.approx(1.0)
    assert after.peak_bits == before.peak_bits or after.bits > before.peak_bits
    assert {(reading.stream, reading.change) for reading in readings(found)} == {(1, None)}
    carried_on = readings(events("ignore"))[-1]
    # the second reader is watched: with the first one's evidence gone there is more of hers
    assert says(readings(found)[-1]) > says(carried_on) + 0.5
    assert readings(found)[-1].speech == pytest.approx(2 * TURN - change.seconds)


def test_split_begins_another_stream_with_its_own_peak():
    found = events("split")
    [change] = changes(found)
    streams = [reading.stream for reading in readings(found)]
    assert streams == sorted(streams)
    assert set(streams) == {1, 2}
    first = next(reading for reading in readings(found) if reading.stream == 2)
    assert first.peak_bits == max(first.bits or 0.0, 0.0)
    assert first.seconds == pytest.approx(change.seconds + 1.0)
    assert all(reading.change is None for reading in readings(found))


@pytest.mark.slow
@pytest.mark.parametrize("on_change", ["note", "reset", "split"])
def test_any_cutting_gives_the_same(on_change):
    whole = told(events(on_change, 2 * TURN * 100), on_change=on_change)
    for every in (37, 250):
        assert told(events(on_change, every), on_change=on_change) == whole


@pytest.mark.slow
def test_alerts_go_on_when_the_first_voice_is_back():
    turns, kept, rule = (FIRST, SECOND, FIRST), RunBuffer(), Threshold("bits", 0.5)
    monitor = Monitor(reference(), watch=FIRST, on_change="note")
    run_through(cut(1000, *turns), monitor, sinks=[kept], rules=[rule])
    found = as_records(kept.events)
    changes = [r for r in found if r["type"] == "change"]
    (back,) = [change for change in changes if "back" in change]
    assert (changes[0].get("back"), changes[-1]["back"]) == (None, True)
    assert 2 * TURN < back["seconds"] < 2 * TURN + 30
    for record in found:
        VALIDATOR.validate(record)
        if record["type"] == "reading":
            opened = changes[0]["seconds"] <= record["seconds"] < back["seconds"]
            assert ("change" in record) == opened
    alerts = [r for r in found if r["type"] == "alert"]
    assert [alert["state"] for alert in alerts[:2]] == ["raised", "cleared"]
    assert [alert["state"] for alert in alerts[2:]] in (["raised"], [])
    assert all(alert["seconds"] > back["seconds"] + 5 for alert in alerts[2:])
    # stopped in the middle of it and resumed
    never = told(events("note", watch=FIRST, turns=turns))
    for stop in (changes[0]["seconds"] + 3, back["seconds"] - 2):
        assert stopped_at(stop, "note", FIRST, [*cut(1000, *turns)]) == never


def stopped_at(
    stop: float, on_change: str, watch: str, items: Sequence[Item]
) -> list[dict[str, Any]]:
    """What is told by a monitor that stops at these seconds and one that goes on."""
    return resumed(
        lambda: Monitor(reference(), watch=watch, on_change=on_change),
        items,
        lambda event: isinstance(event, Reading) and event.seconds >= stop,
    )


@pytest.mark.slow
@pytest.mark.parametrize("on_change", ["note", "split"])
@pytest.mark.parametrize("stop", [60, 95, 120])
def test_stopped_and_resumed_equals_never_stopped(on_change, stop):
    never = told(events(on_change), on_change=on_change)
    assert stopped_at(stop, on_change, SECOND, [*cut(1000)]) == never


def test_the_detector_that_comes_alone_is_the_one_of_rivers_package():
    from river.drift import ADWIN

    alone, packaged = adwin()(delta=0.05), ADWIN(delta=0.05)
    found = []
    for value in np.random.default_rng(0).normal(np.repeat([0.8, 0.3], 200), 0.1).tolist():
        alone.update(value), packaged.update(value)
        found.append((alone.drift_detected, alone.estimation, alone.width))
        assert found[-1] == (packaged.drift_detected, packaged.estimation, packaged.width)
    assert any(drift for drift, *_ in found)


def heard_by(watch: str, *turns: str, on_change: str = "note") -> list[Reading]:
    return readings(events(on_change, watch=watch, turns=turns))


def says(reading: Reading) -> float:
    local = reading.closed_set_bits
    assert local is not None
    return local


@pytest.mark.slow
@pytest.mark.parametrize("turns", [(FIRST, SECOND), (FIRST, SECOND, FIRST)])
def test_another_voice_does_not_lower_the_first_ones_figure(turns):
    first = changes(events("note", watch=FIRST, turns=turns))[0]
    found = heard_by(FIRST, *turns)
    mixed = heard_by(FIRST, *turns, on_change="ignore")
    before = next(r for r in found if r.seconds >= first.since_seconds - 1)
    for reading, all_of_it in zip(found, mixed, strict=True):
        if reading.seconds < first.seconds:
            assert reading.excluded_seconds is None
            assert says(reading) == says(all_of_it)
            continue
        assert says(reading) >= says(all_of_it) - 1e-9
        assert says(reading) >= says(before) - 0.05
        assert reading.excluded_seconds is not None
        assert 0 <= reading.excluded_seconds < reading.speech
    assert says(mixed[-1]) < says(found[-1]) - 0.2
    left_out = found[-1].excluded_seconds
    # where the first speaks again there may be more evidence in all of it than in both turns
    assert left_out == pytest.approx(TURN, abs=15) or (len(turns) == 3 and left_out == 0)
    assert found[-1].speech == len(turns) * TURN


def test_who_comes_second_is_not_lost_and_the_first_goes_on_where_it_was():
    last = heard_by(SECOND, FIRST, SECOND)[-1]
    afresh = heard_by(SECOND, FIRST, SECOND, on_change="reset")[-1]
    assert says(last) >= says(afresh) - 0.1
    assert says(last) >= says(heard_by(SECOND, SECOND)[-1]) - 0.2
    assert last.bits is not None
    assert afresh.bits is not None
    assert last.bits >= afresh.bits - 0.1  # of other seconds: the reset comes when it is noticed
    again, alone = (heard_by(FIRST, FIRST, who, FIRST)[-1] for who in (SECOND, FIRST))
    assert says(again) >= says(alone) - 0.1


def test_nobody_watched_all_is_summed():
    nobody, monitor = (Monitor(reference(), watch=w, on_change="note") for w in (None, FIRST))
    found = readings(list(nobody.events(cut(1000))))
    assert all(reading.excluded_seconds is None for reading in found)
    assert (
        nobody.own_totals.speech
        == nobody.core.evidence.own_totals.speech
        == 2 * TURN * TICKS_PER_SECOND
    )
    # what a ledger adds up is the watched speaker's
    *_, last = readings(list(monitor.events(cut(1000))))
    own = monitor.own_totals
    assert last.excluded_seconds is not None
    assert own.speech == round(100 * (last.speech - last.excluded_seconds))
    assert (
        own.frames["f0"] == own.totals["f0"].sum() < monitor.core.evidence.own_totals.frames["f0"]
    )


def test_a_twin_is_cut_at_the_same_place():
    clear = Monitor(reference(), watch=FIRST, on_change="note")
    twin, told = create_twin(clear)
    found = []
    other = iter(twin.listen(cut(1000)))
    change = None
    for event in clear.listen(cut(1000)):
        if isinstance(event, Change):
            change = event
        if not isinstance(event, Reading):
            continue
        if change is not None:
            told.set_change(round(event.seconds * TICKS_PER_SECOND), change)
            change = None
        same = next(each for each in other if isinstance(each, Reading))
        found.append((event.bits, event.excluded_seconds) == (same.bits, same.excluded_seconds))
    assert all(found)
    assert len(found) == 2 * TURN


def sums(speech: int) -> FeatureTotals:
    counts = np.array([speech, 2 * speech])
    return FeatureTotals(speech, {"f0": counts}, {"f0": 3 * speech}, {"f0": speech})


def test_marks_are_bounded_and_the_newest_are_fine():
    past = PrefixSums()
    for second in range(1, 5000):
        past.add(100 * second, partial(sums, second))
        past.add(100 * second + 10, lambda: sums(-1))  # too near
    arrays = pack_marks(past.marks, sums(0))
    ticks = arrays["counts"][:, 0]
    assert len(ticks) <= 48
    assert (np.diff(ticks[-20:]) == 100).all()
    assert ticks[0] == 100
    assert (np.diff(ticks) > 0).all()
    again = pack_marks(unpack_marks("", arrays, sums(0)), sums(0))
    for one, other in zip(again.values(), arrays.values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_of_the_stretches_that_are_over_the_best_sum_is_kept():
    stretches, past = SpeakerSegments(sums(0)), PrefixSums()
    asked = []

    def best(choices: Sequence[FeatureTotals]) -> int:
        asked.append([each.speech for each in choices])
        return answers.pop(0)

    answers = [2, 0, 0]
    for second in range(1, 61):
        past.add(100 * second, partial(sums, 100 * second))
        if second in (12, 31, 35, 50):
            stretches.change(past.find(100 * (second - 2)), best)
    # [0, 10) is kept at first, then [10, 29) instead; [29, 33) is too short to be alone
    assert asked == [[2900, 1000, 1900], [2300, 1900], [3800, 2300, 1500]]
    for chosen, speech in enumerate([6000, 5000, 1200, 3800]):
        stretches.chosen = chosen
        assert stretches.get_totals(sums(6000)).speech == speech


def test_what_nobody_said_is_no_choice():
    """A stretch of no speech reads 0 bits, which is more than much speech of somebody else."""
    stretches, counts = SpeakerSegments(sums(0)), [0, 100, 2000]
    stretches.change(Mark(300, sums(300)), lambda _: 0)  # of three seconds
    speech = np.array([3000 + more for more in counts])
    running, _ = stack_totals([sums(each) for each in speech])
    parts = stretches.parts(Moments([3000, 3100, 5000], speech, running, {}, {}))
    assert [part.enough.tolist() for part in parts] == [[True] * 3, [True] * 3, [False] * 3]
    assert [part.speech.tolist() for part in parts[1:]] == [(speech - 300).tolist(), [300] * 3]


@pytest.mark.parametrize(
    "change",
    [
        {"chosen": 4}, {"chosen": -1}, {"kept/counts": np.zeros((3, 4), np.int64)},
        {"kept/counts": np.zeros((0, 4), np.int64)}, {"kept/counts": np.zeros((1, 3), np.int64)},
    ],
)  # fmt: skip
def test_what_no_stream_was_is_refused(change):
    stretches = SpeakerSegments(sums(0))
    stretches.change(Mark(100, sums(1)), lambda _: 0)
    plain, arrays = stretches.state()
    plain |= {key: value for key, value in change.items() if key in plain}
    arrays |= {key: value for key, value in change.items() if key in arrays}
    with pytest.raises((ValueError, KeyError)):
        SpeakerSegments(sums(0)).restore(plain, arrays)


CUT = 60  # seconds


@pytest.fixture(scope="module")
def call(shared) -> tuple[AnyArray, int]:
    """A reader who goes through a telephone after a minute."""
    path = shared / "speech/train-clean-5/19/198.opus"
    blocks = [b for b in File(path, end_seconds=2.0 * CUT) if isinstance(b, Block)]
    sound, rate = np.concatenate([block.samples.ravel() for block in blocks]), blocks[0].rate
    band = butter(6, [300, 3400], "bandpass", fs=rate, output="sos")
    later = sosfilt(band, sound[CUT * rate :])
    return np.concatenate([sound[: CUT * rate], later]).astype(np.float32), rate


def of_call(call, on_change="note", every=16_000):
    sound, rate = call
    monitor = Monitor(reference(), watch="1088", on_change=on_change)
    blocks = audio(sound, range(every, len(sound), every), rate)
    return told(monitor.events(Listed(blocks)), on_change=on_change)


def test_a_telephone_is_noticed(call):
    noted, ignored = of_call(call), of_call(call, "ignore")
    found = [r for r in noted if r["type"] == "change"]
    # a pitch that stays as it was may tell that it is still the same voice
    told = [(r["features"], r.get("back", False)) for r in found]
    assert told in ([(["channel"], False)], [(["channel"], False), (["f0"], True)])
    assert CUT < found[0]["seconds"] <= CUT + 15
    assert abs(found[0]["since_seconds"] - CUT) <= 6
    assert found[0]["margin_before"] > found[0]["margin_after"]
    # until then readings do not depend on whether it is looked for
    noted, ignored = ([r for r in each if r["type"] == "reading"] for each in (noted, ignored))
    until = next(i for i, reading in enumerate(noted) if "change" in reading)
    assert 0 < until < len(noted) == len(ignored)
    assert noted[:until] == ignored[:until]


def test_a_call_is_the_same_for_any_cutting_and_after_a_stop(call):
    sound, rate = call
    never = of_call(call, "split")
    assert any(record["type"] == "change" for record in never)
    for every in (997, 16_000 * 2 * CUT):
        assert of_call(call, "split", every) == never
    blocks = audio(sound, range(rate, len(sound), rate), rate)
    for stop in (40, 70, 90):
        assert stopped_at(stop, "split", "1088", blocks) == never
