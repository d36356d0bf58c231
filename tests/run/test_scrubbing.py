"""What is kept of a recording under a budget of bits: stretches, the search, and real readers."""

import math
import stat
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import MonitorError, OverlapError, UsageError
from monitor.events.declaration import find_first
from monitor.events.run import RunStart
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.run.measuring import MeasurementSettings, measure
from monitor.run.scrub_attackers import CHANGED, LEFT, PROTECTED, WHOLE, ScrubSettings
from monitor.run.scrubbing import scrub
from monitor.run.stretches import choose_kept, divide_at_pauses
from monitor.types import TICKS_PER_SECOND

READER = "2035"


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 700)), min_size=1, max_size=12))
def test_stretches_tile_the_recording_and_lose_no_speech(runs):
    speech = np.repeat([spoken for spoken, _ in runs], [ticks for _, ticks in runs])
    found = divide_at_pauses(speech)
    assert found[0].start == 0
    assert found[-1].end == len(speech) / TICKS_PER_SECOND
    assert all(one.end == other.start for one, other in pairwise(found))
    assert sum(each.speech for each in found) == pytest.approx(speech.sum() / TICKS_PER_SECOND)
    assert all(each.speech <= 3.0 for each in found)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), min_size=1, max_size=7),
    st.integers(0, 60),
)
def test_what_is_kept_fits_and_nothing_can_be_added(stretches, budget):
    lengths, costs = zip(*stretches, strict=True)

    def fits(kept: frozenset[int]) -> bool:
        return bool(kept) and sum(costs[i] for i in kept) <= budget

    order = sorted(range(len(costs)), key=lambda i: costs[i] / lengths[i])
    kept = choose_kept(lengths, order, fits, 20)
    assert not kept or fits(kept)
    others = set(order) - kept
    assert not any(fits(kept | {each}) for each in others)
    # a knapsack by density is worth at least half of the best where one stretch alone may win
    best = max(
        sum(lengths[i] for i in range(len(costs)) if mask >> i & 1)
        for mask in range(1 << len(costs))
        if sum(costs[i] for i in range(len(costs)) if mask >> i & 1) <= budget
    )
    assert sum(lengths[i] for i in kept) >= best / 2


@pytest.fixture(scope="module")
def talk(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve seconds of a shipped reader, of another chapter than the enrolled one."""
    return beginning(shared, 12, tmp_path_factory.mktemp("talk") / "talk.wav")


def beginning(shared: Path, seconds: int, path: Path) -> Path:
    source = shared / "speech" / "dev-clean" / READER / "152373.opus"
    samples, rate = soundfile.read(source, stop=48_000 * seconds)
    soundfile.write(path, samples[: seconds * rate], rate, subtype="PCM_16")
    return path


@pytest.mark.slow
def test_no_second_of_what_is_written_exceeds_the_budget(talk, tmp_path):
    people, out = Population.reference(), tmp_path / "out.wav"
    made = scrub(talk, out, people, READER, 12.0, ScrubSettings(tries=4))
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert made.strongest(made.before)[1].peak > 9
    assert 1 < made.kept_seconds < made.speech_seconds / 2
    peak = max(heard.peak for heard in made.after.values())
    assert 0 < peak <= 12
    start = find_first(made.measured.events, RunStart)
    heard = measure(
        out, settings=MeasurementSettings(on_change="note"), watch=READER, features=start.features
    )
    own = [reading.bits or 0.0 for reading in heard.readings]
    claimed = [reading.bits or 0.0 for reading in made.measured.readings]
    assert own == claimed
    assert max(own) <= peak
    every = {who.features for who in made.after}
    assert {("f0",), ("phones",), ("voice",)} < every
    assert out.stat().st_size < talk.stat().st_size / 2


@pytest.mark.slow
def test_silence_keeps_the_length_and_a_budget_that_is_kept_keeps_the_sound(talk, tmp_path):
    people = Population.reference()
    quiet = scrub(talk, tmp_path / "quiet.wav", people, READER, 3.0,
                  ScrubSettings(silence=True, tries=0, features=["phones"]))  # fmt: skip
    before, after = (soundfile.read(each)[0] for each in (talk, tmp_path / "quiet.wav"))
    assert len(before) == len(after)
    assert {who.hears for who in quiet.after} == {WHOLE, LEFT}
    (gone,) = [s for s in quiet.stretches if not s.is_kept][:1]
    rate = soundfile.info(talk).samplerate
    inside = slice(round((gone.start + 0.1) * rate), round((gone.end - 0.1) * rate))
    assert np.abs(after[inside]).max() == 0 < np.abs(before[inside]).max()
    assert max(heard.peak for heard in quiet.after.values()) <= 3
    allowed = quiet.strongest(quiet.before)[1].peak + 0.2
    same = scrub(
        talk, tmp_path / "same.wav", people, READER, allowed, ScrubSettings(features=["phones"])
    )
    assert all(each.is_kept for each in same.stretches)
    assert np.array_equal(before, soundfile.read(tmp_path / "same.wav")[0])


@pytest.mark.slow
def test_an_anonymiser_that_is_not_enough_is_refused(talk, tmp_path):
    people, out = Population.reference(), tmp_path / "out.wav"
    out.write_bytes(b"what was there")
    settings = ScrubSettings(anonymiser="mcadams:0.99", features=["voice"])
    with pytest.raises(MonitorError, match=r"mcadams:0.99 cannot meet the budget.* more than the"):
        scrub(talk, out, people, READER, 3.0, settings)
    samples, rate = soundfile.read(talk)
    clear = tmp_path / "clear.wav"
    soundfile.write(clear, samples[round(4.8 * rate) : round(10.6 * rate)], rate)
    with pytest.raises(MonitorError, match=r"clear.wav stays under 3 bits"):
        scrub(clear, out, people, READER, 3.0, ScrubSettings(features=["voice"]))
    assert out.read_bytes() == b"what was there"


@pytest.mark.slow
def test_where_calibration_ends_below_the_budget_it_says_maybe(shared, tmp_path):
    minute = beginning(shared, 60, tmp_path / "talk.flac")  # its name draws, too
    people = Population.reference()
    rank_models = []
    for each in people.rank_models:
        if each.features == ("f0",) and (evidence := each.evidence) is not None:
            support = np.minimum(evidence.support, 4.0)
            each = replace(each, evidence=replace(evidence, support=support))
        rank_models.append(each)
    said = r"at least .* bits .*\(f0, .*more than the 6 allowed"
    with pytest.raises(MonitorError, match=said):
        scrub(
            minute, tmp_path / "out.wav", people.with_rank_models(RankModels(rank_models)), READER,
            6.0, ScrubSettings(anonymiser="mcadams:random", seed=2),
        )  # fmt: skip


@pytest.mark.slow
def test_who_knows_the_anonymiser_is_tried_where_templates_are_given(talk, tmp_path):
    people = Population.reference()
    settings = ScrubSettings(
        anonymiser="usc", protected=people, features=["voice"], tries=2, seed=1
    )
    made = scrub(talk, tmp_path / "out.flac", people, READER, 6.0, settings)
    hears = {(who.hears, who.templates) for who in made.after}
    assert {(WHOLE, PROTECTED), (CHANGED, PROTECTED), (LEFT, "clear"), (WHOLE, "clear")} >= hears
    assert (CHANGED, PROTECTED) in hears
    assert max(heard.peak for heard in made.after.values()) <= 6
    assert len(soundfile.read(tmp_path / "out.flac")[0]) == len(soundfile.read(talk)[0])


def test_a_budget_that_no_figure_exceeds_is_refused_before_audio_is_read(tmp_path):
    """Silence would be refused when it is read."""
    soundfile.write(tmp_path / "silence.wav", np.zeros(16_000), 16_000)
    out = tmp_path / "out.wav"
    settings = ScrubSettings(features=["f0"])
    with pytest.raises(UsageError, match=r"budget 12 bits: .*less than \d"):
        scrub(tmp_path / "silence.wav", out, Population.reference(), READER, 12.0, settings)
    assert not out.exists()


@pytest.mark.slow
def test_what_makes_no_sense_is_refused_and_writes_nothing(talk, shared, tmp_path):
    people, out = Population.reference(), tmp_path / "out.wav"
    for budget in (0.0, -1.0, math.nan):
        with pytest.raises(UsageError, match="use more than 0"):
            scrub(talk, out, people, READER, budget)
    with pytest.raises(UsageError, match=r"invalid budget .*: use less than"):
        scrub(talk, out, people, READER, 60.0, ScrubSettings(features=["voice"]))
    with pytest.raises(UsageError, match="must end in"):
        scrub(talk, tmp_path / "out.mp3", people, READER, 6.0)
    with pytest.raises(UsageError, match="need an anonymiser"):
        ScrubSettings(protected=people)
    enrolled = shared / "speech" / "dev-clean" / "1272" / "128104.opus"
    with pytest.raises(OverlapError):
        scrub(enrolled, out, people, "1272", 6.0)
    assert not out.exists()
