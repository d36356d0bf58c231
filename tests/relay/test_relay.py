"""What may go out, and how it does: gate, queue, outlet and relay."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import soundfile
import soxr
from hypothesis import given
from hypothesis import strategies as st

from monitor import Monitor, Population, alerts, enrol
from monitor.anonymisers.recording import ProtectedBlocks
from monitor.errors import SourceError, UsageError
from monitor.events import Alert, Reading
from monitor.relay import MUTED, Gate, OutputDevice, Relay, RelayPath, RelaySettings
from monitor.relay.gate import MARGIN_BITS
from monitor.relay.outlet import LEAST_SECONDS, MOST_SECONDS, SoundQueue
from monitor.run import Run
from monitor.sources import AudioQueue
from monitor.types import Block, FloatArray
from tests.sounds import RATE, synthetic

BUDGET = 3.4


@pytest.fixture(scope="module")
def voice() -> FloatArray:
    return synthetic(14.0, pitch=230.0)


@pytest.fixture(scope="module")
def monitor() -> Monitor:
    return Monitor(Population.reference(), ["f0"])


def test_an_old_soxr_is_named(monkeypatch):
    """Its streams have no variable rate; only a relay needs one."""

    class Old:
        def __init__(self, rate_in: float, rate_out: float, channels: int, dtype: str) -> None: ...

    monkeypatch.setattr(soxr, "ResampleStream", Old)
    with pytest.raises(SourceError, match=r"soxr 1.1 or later"):
        SoundQueue(RATE).put(np.zeros(160, np.float32), RATE)


def gate_of(monitor: Monitor, method: str | None = None, **options) -> Gate:
    fresh = [monitor.fresh(step_seconds=0.5) for _ in range(4)]
    ways = [RelayPath("clear", fresh[:1])]
    if method is not None:
        protect = ProtectedBlocks(method, ("live",), seed=1)
        ways.append(RelayPath(method, fresh[1:2], fresh[2:3], protect))
    return Gate(options.pop("budget", BUDGET), ways, 0.5, **options)


def sent_by(gate: Gate, sound: FloatArray, cuts: Sequence[int] = (1600,)) -> FloatArray:
    """What goes out of sound that comes in pieces of these lengths, over and over."""
    sent, at, k = [np.empty(0, np.float32)], 0, 0
    while at < len(sound):
        size = cuts[k % len(cuts)]
        sent += [block.samples for block in gate.take(Block(sound[at : at + size], RATE))]
        at, k = at + size, k + 1
    return np.concatenate(sent)


def bits_of(monitor: Monitor, sound: FloatArray) -> float:
    """The most that the other side reads of a recording."""
    heard = monitor.fresh(step_seconds=0.5)
    readings = [*heard.push(Block(sound.astype(np.float32), RATE)), *heard.finish()]
    return max(reading.bits or 0.0 for reading in readings)


def test_nothing_beyond_the_budget_goes_out(monitor, voice):
    assert bits_of(monitor, voice) > BUDGET + 0.5
    gate = gate_of(monitor)
    sent = sent_by(gate, voice)
    (closing,) = gate.closings
    clear = round(closing.seconds * RATE)
    assert 0 < clear < len(voice) / 2
    assert gate.way == closing.way == MUTED
    assert closing.spent_bits == gate.bits
    assert closing.requested_bits == gate.held_bits - gate.bits
    assert closing.left_bits == pytest.approx(BUDGET - MARGIN_BITS - gate.bits)
    assert closing.requested_bits > closing.left_bits >= 0
    assert gate.left_bits == 0.0
    assert gate.bits <= BUDGET - MARGIN_BITS < gate.held_bits
    assert np.array_equal(sent[:clear], voice[:clear])
    assert not sent[clear:].any()
    assert bits_of(monitor, sent) <= BUDGET
    assert bits_of(monitor, sent[:clear]) <= BUDGET  # cut off there, what waits counts as well


@pytest.mark.parametrize("silence", [60_000, 60_500, 61_000])  # after the last two, noise counts
def test_a_recording_that_begins_in_silence_keeps_the_budget(shared, tmp_path, silence):
    # it begins within a word: after silence more of it counts as speech, and reads 7.8 bits
    sound, rate = soundfile.read(shared / "nonnative/2451.opus", dtype="float32")
    (tmp_path / "2451").mkdir()
    soundfile.write(tmp_path / "2451/a.wav", sound[: 30 * rate], rate)
    people = Population.reference().joined(enrol(tmp_path).population)
    monitor = Monitor(people, watch="2451", on_change="note")
    said = soxr.resample(sound[30 * rate : 33 * rate], rate, 48_000)
    sent = [block.samples for block in gate_of(monitor, budget=4.5).take(Block(said, 48_000))]
    recording = np.concatenate([np.zeros(silence, np.float32), *sent, np.zeros(48_000, np.float32)])
    assert max(r.bits or 0.0 for r in monitor.fresh().stream(recording, rate=48_000)) <= 4.5


def test_a_way_ends_no_earlier_than_it_must(monitor, voice):
    gate = gate_of(monitor)
    sent_by(gate, voice)
    further = voice[: round((gate.closings[0][0] + 1.0) * RATE)]
    most = max(bits_of(monitor, further[at:]) for at in range(0, len(further), RATE // 4))
    assert most > BUDGET - MARGIN_BITS  # what the gate keeps back


@pytest.mark.parametrize("cuts", [(48_000,), (333, 7, 5000), (8000,)])
def test_any_cutting_lets_the_same_out(monitor, voice, cuts):
    same = sent_by(gate_of(monitor), voice[: 8 * RATE])
    other = sent_by(gate_of(monitor), voice[: 8 * RATE], cuts)
    shorter = min(len(same), len(other))
    assert shorter > 7 * RATE
    assert np.array_equal(same[:shorter], other[:shorter])


def test_after_clear_sound_it_is_protected(monitor, voice):
    gate = gate_of(monitor, "noise:0", budget=5.2)
    sent = sent_by(gate, voice)
    first = round(gate.closings[0][0] * RATE)
    after = slice(first + RATE // 2, first + RATE)
    assert np.array_equal(sent[:first], voice[:first])
    assert sent[after].any()
    assert not np.allclose(sent[after], voice[after], atol=1e-3)
    assert bits_of(monitor, sent) <= 5.2
    if len(gate.closings) > 1:  # what was protected tells too much as well
        assert not sent[round(gate.closings[1][0] * RATE) :].any()


def test_without_delay_it_closes_one_step_late(monitor, voice):
    held, loose = gate_of(monitor), gate_of(monitor, hold=False)
    sent_by(held, voice)
    sent = sent_by(loose, voice)
    late = loose.closings[0][0] - held.closings[0][0]
    assert 0.0 < late <= 0.5 + 1e-6
    assert len(sent) == len(voice)
    assert np.array_equal(sent[:1600], voice[:1600])
    assert loose.bits == pytest.approx(held.held_bits, abs=0.3)  # it has sent what the other held
    assert loose.held_bits == 0.0
    assert loose.closings[0].left_bits == 0.0


def test_who_is_muted_tells_nothing_and_goes_on(monitor, voice):
    gate = gate_of(monitor)
    gate.muted = True
    assert not sent_by(gate, voice[: 4 * RATE]).any()
    assert gate.bits == 0.0
    gate.muted = False
    assert sent_by(gate, voice[:RATE]).any()


def test_sound_of_a_device_that_has_gone_is_silent(monitor, voice):
    gate = gate_of(monitor)
    before = gate.take(Block(voice[: RATE // 4], RATE, 0))
    after = gate.take(Block(voice[:RATE], RATE, 1))
    assert before == []
    assert len(after[0].samples) == RATE // 4
    assert not after[0].samples.any()
    assert after[1].recording == 1


def test_stereo_and_numbers_that_are_none(monitor, voice):
    sound = np.stack([voice, voice], axis=1)[:RATE]
    sound[5] = np.nan
    gate = gate_of(monitor, budget=9.0)
    sent = np.concatenate([block.samples for block in gate.take(Block(sound, RATE))])
    assert sent.shape == (RATE,)
    assert sent[5] == 0.0
    assert np.array_equal(sent[6:], voice[6:RATE])


def test_a_rule_may_close_it(monitor, voice):
    gate = gate_of(monitor)
    sent_by(gate, voice[:RATE])
    gate.close_way()
    assert not sent_by(gate, voice[RATE : 3 * RATE]).any()


def test_what_a_rule_mutes_later_is_no_word_held_back(monitor, voice):
    gate = gate_of(monitor, "noise:0", budget=5.2)
    at = 0
    while not gate.closings:
        gate.take(Block(voice[at : at + RATE // 2], RATE))
        at += RATE // 2
    assert gate.way == "noise:0"
    assert gate.held_bits > 5.2 - MARGIN_BITS
    gate.close_way()
    gate.take(Block(voice[at : at + RATE], RATE))
    assert gate.way == MUTED
    assert gate.held_bits == 0.0


def test_what_earlier_sessions_spent_counts(monitor, voice):
    earlier, now = monitor.fresh(), monitor.fresh()
    earlier.push(Block(voice[: 5 * RATE], RATE))
    now.resume_from(earlier.totals)
    gate = gate_of(now)
    assert gate.way == MUTED
    assert not sent_by(gate, voice[:RATE]).any()


# --- The queue between two clocks.


@pytest.mark.parametrize("parts_per_million", [-100, 100])
def test_drifting_clocks_are_followed_without_clicks(parts_per_million):
    rate, block = 8000, 400
    queue = SoundQueue(rate)
    seconds = 400.0
    t = np.arange(round(seconds * rate)) / rate
    tone = (0.5 * np.sin(2 * np.pi * 200 * t)).astype(np.float32)
    due, out, waited = 0.0, [], []
    for at in range(0, len(tone), block):
        queue.put(tone[at : at + block], rate)
        due += block * (1 + parts_per_million * 1e-6)
        count = int(due)
        due -= count
        if at > rate // 10:
            out.append(queue.take(count))
            waited.append(queue.waiting_seconds)
    sound = np.concatenate(out)[60 * rate :]
    steepest = 0.5 * (2 * np.pi * 200 / rate) ** 2  # second difference of the tone
    assert np.abs(np.diff(sound, 2)).max() < 1.05 * steepest
    assert queue.dropped == 0
    late = np.array(waited[len(waited) // 2 :])
    assert abs(late.min() - LEAST_SECONDS) < 0.01


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=4), st.sampled_from([8000, 44_100]))
def test_no_sample_is_lost_or_doubled(sizes, rate):
    queue, given_seconds = SoundQueue(16_000), 0.0
    for size in (3000, *sizes):  # the first fills the cushion
        queue.put(np.ones(size, np.float32), rate)
        given_seconds += size / rate
    waiting = round(queue.waiting_seconds * 16_000)
    assert given_seconds - queue.waiting_seconds < 0.05  # the resampler's own
    sound = queue.take(waiting + 100)
    assert np.array_equal(sound[waiting:], np.zeros(100))
    assert queue.waiting_seconds == 0.0


# --- The outlet: silence in every doubt.


class Output:
    """An output device whose clock a test turns."""

    name, rate = "meeting", RATE

    def start(self, give: Callable[[int], FloatArray], ended: Callable[[], None]) -> None:
        self.give, self.end = give, ended

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def output() -> Output:
    return Output()


def test_an_outlet_is_silent_before_and_after_what_was_written(output):
    outlet = OutputDevice("meeting", lambda _: output)
    outlet.start()
    assert not output.give(500).any()
    outlet.write(np.ones(2000, np.float32), RATE)
    assert output.give(1000).any()
    output.give(2000)
    assert not output.give(500).any()


def test_after_a_standstill_old_sound_is_left_out(output):
    outlet = OutputDevice("meeting", lambda _: output)
    outlet.start()
    outlet.write(np.full(10 * RATE, 0.1, np.float32), RATE)
    outlet.write(np.full(RATE, 0.2, np.float32), RATE)
    assert outlet.lost_seconds == pytest.approx(11 - MOST_SECONDS, abs=0.1)
    given = output.give(round(MOST_SECONDS * RATE))
    assert given[-1] == pytest.approx(0.2, abs=0.01)


def test_a_queue_that_ran_dry_waits_for_more():
    queue, sound = SoundQueue(8000), np.full(400, 0.1, np.float32)
    silent = []
    for k in range(400):  # a source that is late again and again, by up to 100 ms
        for _ in range(3 if k % 3 == 2 else 0):
            queue.put(sound, 8000)
        silent.append(not queue.take(400).all())
    assert sum(silent[:100]) > 2
    assert sum(silent[100:]) == 0


def test_a_queue_that_lags_catches_up():
    queue, sound = SoundQueue(8000), np.zeros(400, np.float32)
    queue.put(np.zeros(12_000, np.float32), 8000)
    for _ in range(20 * 20):
        queue.put(sound, 8000)
        queue.take(400)
    assert queue.waiting_seconds < 0.2
    assert 1.0 < queue.dropped / 8000 < 1.6


def test_an_outlet_whose_device_has_gone_says_so(output):
    outlet = OutputDevice("meeting", lambda _: output)
    outlet.start()
    output.end()
    with pytest.raises(SourceError, match="meeting"):
        outlet.write(np.ones(100, np.float32), RATE)


def test_sound_is_passed_on_while_it_is_permitted(output):
    now = [0.0]
    outlet = OutputDevice("meeting", lambda _: output, clock=lambda: now[0])
    outlet.start()
    sound = np.ones((1600, 2), np.float32)
    outlet.pass_on(sound, RATE)
    assert not output.give(1600).any()
    outlet.permit(1.5)
    outlet.pass_on(sound, RATE)
    assert output.give(1600).any()
    output.give(1600)
    now[0] = 2.0  # a monitor that stands still permits no longer
    outlet.pass_on(sound, RATE)
    assert not output.give(1600).any()


# --- The relay in a run.


def speak(relay: Relay, voice: FloatArray, monitor: Monitor, **options) -> Run:
    """A run over what goes out of a voice."""
    queue = AudioQueue(RATE, queue_seconds=60)
    queue.put(voice)
    queue.stop()
    relays = [relay]
    rules = [*options.pop("rules", ()), relay]
    with Run(relay.source(queue), monitor.fresh(), rules=rules, actions=relays) as run:
        relay.begin(run.monitor)
        relay.outlet._queue.put = lambda *_: None  # type: ignore[method-assign]  # nobody listens
        run.to_end()
    return run


def test_a_run_measures_what_went_out_and_tells_when_it_ended(monitor, voice, output):
    relay = Relay(OutputDevice("meeting", lambda _: output), RelaySettings(BUDGET))
    run = speak(relay, voice, monitor)
    assert run.totals.alerts == 1
    assert relay.sent_bits + relay.kept_bits <= BUDGET
    assert run.end.bits is not None
    assert run.end.bits <= BUDGET
    assert run.end.seconds == pytest.approx(len(voice) / RATE, abs=0.5)
    assert relay.way == MUTED
    assert output.closed


def test_an_alert_mutes(monitor, voice, output):
    settings = RelaySettings(5.2, closes_on_alert=True)
    relay = Relay(OutputDevice("meeting", lambda _: output), settings)
    run = speak(relay, voice, monitor, rules=[alerts.Threshold("bits", 2.0)])
    assert relay.way == MUTED
    assert run.end.seconds == pytest.approx(14.0, abs=0.6)
    assert run.end.speech < 8  # of 11 s


@pytest.mark.parametrize("is_spent", [True, False])
def test_what_another_rule_mutes_is_no_spent_budget(monitor, voice, output, is_spent):
    relay = Relay(
        OutputDevice("meeting", lambda _: output), RelaySettings(BUDGET, closes_on_alert=True)
    )
    relay.begin(monitor)
    relay.send(Block(voice[:RATE], RATE))
    if not is_spent:
        relay.write(Alert(1.0, 1.0, "bits>0", "bits", 0.0, "raised", 1.0))
    relay.send(Block(voice[RATE:], RATE))
    reading = Reading.from_record({})
    assert relay.way == MUTED
    assert [alert.way for alert in relay.update(reading)] == [MUTED] * is_spent
    assert relay.update(reading) == []


def test_clear_sound_is_never_passed_on_where_it_is_protected(output):
    settings = RelaySettings(None, delay_seconds=0.0, protected="mcadams:0.8")
    relay = Relay(OutputDevice("meeting", lambda _: output), settings)
    relay.outlet.start()
    relay.send(Block(np.ones(RATE, np.float32), RATE))
    output.give(RATE)
    relay.outlet.pass_on(np.ones((RATE, 1), np.float32), RATE)
    assert not output.give(RATE).any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget_bits": -1.0}, "invalid budget -1"),
        ({"budget_bits": 30.0}, "invalid budget"),
        ({"budget_bits": 4.0, "then": "mcadams:"}, "mcadams"),
        ({"budget_bits": 4.0, "delay_seconds": 0.1}, "invalid delay 0.1 s: use 0.36"),
    ],
)
def test_settings_that_make_no_sense_are_refused(monitor, output, settings, message):
    with pytest.raises(UsageError, match=message):
        Relay(OutputDevice("meeting", lambda _: output), RelaySettings(**settings)).begin(monitor)
