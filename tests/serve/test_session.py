"""The browser's microphone is heard as any other: the same templates, the same readings."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from monitor import Monitor, Run
from monitor.corpus import Corpus, Recording
from monitor.errors import UsageError
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.serve.browser_audio import BrowserMicrophone, RefusedError
from monitor.serve.session import ServeSettings, Session
from monitor.serve.templates import TemplateFolder, checked_name
from monitor.sources import File
from monitor.training.enrolling import enrol
from monitor.types import Block, Gap
from tests.serve.conftest import ENROL_SECONDS, RATE, frames, of_kind, told, wav
from tests.waiting import until


@pytest.fixture
def settings(enrolled) -> ServeSettings:
    return ServeSettings(enrolled[0].templates, ENROL_SECONDS, 60.0)


def records(session: Session) -> list[dict[str, Any]]:
    assert session.hub is not None
    return [json.loads(entry.data) for entry in session.hub.records_since(0)]


def reached(session: Session, count: int) -> bool:
    return len(of_kind(records(session))) >= count


def hears(session: Session, sound: np.ndarray, start: int = 0) -> None:
    """Seconds of sound, no faster than they are heard: else less is."""
    for second in range(start, start + len(sound) // RATE):
        at = (second - start) * RATE
        for frame in frames(sound[at : at + RATE], second * RATE):
            session.receive_audio(frame)
        until(partial(reached, session, second))


def replayed(settings: ServeSettings, path: Path) -> list[dict[str, Any]]:
    with Run(File(path), partial(settings.monitor, name="Ann")) as run:
        return of_kind([json.loads(json.dumps(event.record())) for event in run])


# --- Templates.


def test_enrolment_at_the_page_makes_the_template_of_enrol(enrolled, chapters, tmp_path):
    settings, said = enrolled
    path = wav(tmp_path / "ann.wav", chapters[0][: 25 * RATE], subtype="PCM_16")
    corpus = Corpus((Recording("Ann", "one", path),), ())
    expected = enrol(corpus, features=settings.features, seconds=ENROL_SECONDS).population
    made = settings.templates.load("Ann")
    rows = slice(*made.offsets[made.index("Ann") : made.index("Ann") + 2])
    for name, each in expected.features.items():
        np.testing.assert_array_equal(made.features[name].slices[rows], each.slices)
    assert len(made) == len(settings.templates.base) + 1
    kinds = [message["type"] for message in said]
    assert kinds[-2:] == ["enrolled", "over"]
    assert "progress" in kinds
    assert said[-2]["seconds"] == ENROL_SECONDS
    assert said[-2]["trouble"] == ""
    assert "dry" in said[-2]["sound"]


def test_a_copy_of_what_was_enrolled_at_the_page_is_noticed(enrolled, chapters, tmp_path):
    path = wav(tmp_path / "copy.wav", chapters[0][RATE : 20 * RATE] / 4, subtype="PCM_16")
    monitor = Monitor(enrolled[0].templates.load("Ann"), ["f0"], "Ann")
    list(monitor.events(str(path)))
    (notice,) = [each for each in monitor.noticed if each.kind == "copy"]
    assert notice.fields["name"] == "Ann"


def is_over(said: list[dict[str, Any]]) -> bool:
    return bool(said) and said[-1]["type"] == "over"


@pytest.mark.slow
def test_an_enrolment_of_two_voices_is_noted_and_made(others, chapters, shared, tmp_path):
    settings = ServeSettings(TemplateFolder(tmp_path / "people", others), 60.0, 60.0)
    other, _ = soundfile.read(shared / "speech/dev-clean/174/50561.opus", RATE * 20, dtype="int16")
    notes = []
    for name, rest in (("Mia", other[: 10 * RATE]), ("Zoe", chapters[0][11 * RATE : 21 * RATE])):
        said: list[dict[str, Any]] = []
        session = Session(settings, said.append)  # type: ignore[arg-type]
        session.enrol(name, RATE)
        for frame in frames(np.concatenate([chapters[0][: 11 * RATE], rest])):
            session.receive_audio(frame)
        session.stop()
        until(partial(is_over, said))
        (made,) = [message for message in said if message["type"] == "enrolled"]
        notes.append(made["notes"])
    assert "Mia: the voice changes about" in notes[0][0]
    assert notes[1] == []


def test_a_template_is_private_holds_no_sound_and_every_command_reads_it(enrolled):
    folder = enrolled[0].templates.folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path.name for path in folder.iterdir()] == ["Ann.npz"]
    assert stat.S_IMODE((folder / "Ann.npz").stat().st_mode) == 0o600
    assert "Ann" in Population.load(folder / "Ann.npz").names


@pytest.mark.parametrize(
    "name", ["सुनीता", "O'Brien", "O’Neill", "நந்தினி", "Zoe\u0308", "X\u0323\u0302u"]
)
def test_names_with_marks_and_apostrophes_are_those_of_people(tmp_path, name):
    """Letters that are written with several characters, in one spelling."""
    folder = TemplateFolder(tmp_path / "people")
    called = checked_name(name)
    readers = Population.reference().only(["f0"])
    f0, (first, last) = readers.features["f0"], readers.offsets[:2]
    own = FeatureTemplates(f0.spec, f0.slices[first:last])
    folder.save(called, Population([Speaker(called)], np.array([0, last - first]), {"f0": own}))
    assert [each.name for each in folder.people()] == [called]
    assert folder.has(name)
    assert called in folder.load(name).names
    folder.forget(name)
    assert folder.people() == []


def test_of_two_that_save_one_name_the_first_is_kept(enrolled, tmp_path):
    own = enrolled[0].templates.load("Ann").chosen(["Ann"])
    folder = TemplateFolder(tmp_path / "people", enrolled[0].templates._base)

    def save(_: int) -> bool:
        try:
            folder.save("Ann", own)
        except UsageError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(save, range(8))) == 1
    folder.save("Ann", own, replace=True)  # who reads it again
    with pytest.raises(UsageError, match="already"):
        folder.check_new("Ann")


def test_forgetting_overwrites_what_was_there(enrolled, tmp_path):
    made = enrolled[0].templates.load("Ann")
    folder = TemplateFolder(tmp_path / "people")
    folder.folder.mkdir()
    path = folder.folder / "Ann.npz"
    made.save(path)
    left = folder.folder / ".Ann.npz.abcdefgh.unfinished"
    left.write_bytes(path.read_bytes())
    with path.open("rb") as old:
        folder.forget("Ann")
        assert set(old.read()) == {0}
    assert list(folder.folder.iterdir()) == []
    with pytest.raises(UsageError, match="letters"):
        folder.forget("../Ann")


@given(st.text())
def test_no_name_leaves_the_folder(name):
    folder = Path("people")
    try:
        path = TemplateFolder(folder)._path(name)
    except UsageError:
        return
    assert path.parent == folder
    assert path.stem == checked_name(name)
    assert not path.name.startswith(".")


# --- Sessions.


def test_a_run_at_the_page_reads_as_a_replay(settings, chapters, tmp_path):
    sound = chapters[1][: 8 * RATE]
    there = replayed(settings, wav(tmp_path / "talk.wav", sound, subtype="PCM_16"))
    session = Session(settings, lambda _: None)
    session.listen("Ann", RATE, 6.0)
    hears(session, sound)
    session.stop()
    until(lambda: not session.busy)
    here = of_kind(records(session))
    assert [each.pop("lag") < 5 for each in here] == [True] * 8
    for each in there:
        each.pop("lag", None)
    assert here == there
    assert here[-1]["bits"] > 1  # it is her


def test_the_threshold_moves_while_she_speaks(settings, chapters):
    session = Session(settings, lambda _: None)
    session.listen("Ann", RATE, 30.0)
    hears(session, chapters[1][: 6 * RATE])
    session.adjust(0.5)
    assert session.hub is not None
    assert [each.threshold for each in session.hub.state().forecast] == [0.5]
    for frame in frames(chapters[1][6 * RATE : 14 * RATE], 6 * RATE):
        session.receive_audio(frame)
    alert = until(lambda: of_kind(records(session), "alert"))[0]
    assert (alert["threshold"], alert["state"]) == (0.5, "raised")
    assert alert["seconds"] > 5
    session.close()
    assert not session.busy


def test_one_purpose_at_a_time_and_names_that_can_be_had(settings):
    session = Session(settings, lambda _: None)
    session.enrol("Bob", 48_000)
    with pytest.raises(UsageError, match="microphone is in use"):
        session.enrol("Cid", 48_000)
    session.close()
    with pytest.raises(UsageError, match="already"):
        session.enrol(settings.templates.base.names[0], 48_000)
    with pytest.raises(UsageError, match="is not enrolled"):
        session.listen("Dora", 48_000, 6.0)
    for rate in (0, -1, 7_999, 10**9):
        with pytest.raises(UsageError, match=rf" {rate} Hz"):
            session.enrol("Eve", rate)


def test_what_is_measured_through_an_anonymiser_comes_back(settings, chapters, tmp_path):
    sent: list[bytes] = []
    session = Session(settings, lambda _: None, sent.append)
    sound = chapters[1][: 6 * RATE]
    session.listen("Ann", RATE, 6.0, "noise:10")
    hears(session, sound)
    session.stop()
    until(lambda: not session.busy)
    places = [int.from_bytes(each[:8], "little") for each in sent]
    back = np.concatenate([np.frombuffer(each[8:], "<i2") for each in sent])
    assert places == list(np.cumsum([0, *(len(each) // 2 - 4 for each in sent)])[:-1])
    assert len(back) == len(sound)
    noise = back.astype(float) - sound
    loud = 10 * np.log10(np.mean(sound.astype(float) ** 2) / np.mean(noise**2))
    assert loud == pytest.approx(10, abs=3)  # its noise, and nothing else
    there = replayed(settings, wav(tmp_path / "protected.wav", back, subtype="PCM_16"))
    here = of_kind(records(session))
    protected = [each["protected"]["bits"] for each in here]
    assert protected == pytest.approx([each["bits"] for each in there], abs=0.01)
    assert here[-1]["bits"] != protected[-1]


@pytest.mark.parametrize("method", ["command:true", "none", "usc:x", 7, ["mcadams:random"]])
def test_no_browser_chooses_what_is_not_on_the_list(settings, method):
    session = Session(settings, lambda _: None)
    with pytest.raises(UsageError, match="no such anonymiser"):
        session.listen("Ann", RATE, 6.0, method)
    assert not session.busy


def test_the_page_begins_with_its_first_step_before_any_script_has_run(client):
    page = client.get("/").text
    body = re.search(r"<body ([^>]*)>", page)
    assert body is not None
    assert 'data-stage="welcome"' in body[1]
    assert "data-serve" in body[1]  # the style then hides what has no figures yet
    (current,) = re.findall(r'data-stage="([\w-]+)" aria-current="step"', page)
    assert current == "welcome"


def test_a_browser_that_comes_back_goes_on_with_its_session(line, client):
    first = line()
    session = told(first, "ready")["session"]
    first.send(json.dumps({"do": "enrol", "name": "Bea", "rate": RATE}))
    for frame in frames(np.zeros(RATE)):
        first.send(frame)
    told(first, "progress")
    first.close()
    again = line(session)
    ready = told(again, "ready")
    assert ready["session"] == session
    assert ready["busy"]
    again.send(json.dumps({"do": "cancel"}))
    told(again, "over")
    assert "Bea" not in client.get("/people").text
    for address in ("/events", "/events?session=guess"):  # only who has it follows it
        assert client.get(address).status_code == 404


# --- The source.


def items(microphone: BrowserMicrophone) -> Iterator[tuple[str, float]]:
    for item in microphone:
        if isinstance(item, Block):
            yield "sound", round(len(item.samples) / item.rate, 3)
        elif isinstance(item, Gap):
            yield item.reason, round(item.lost_seconds or 0.0, 3)


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_what_is_lost_on_the_way_is_a_gap_and_nothing_else(came):
    sound = np.arange(320 * len(came)) % 100
    with BrowserMicrophone(RATE, seconds=60) as microphone:
        for there, frame in zip(came, frames(sound), strict=True):
            if there:
                microphone.receive_audio(frame)
        microphone.stop()
        found = list(items(microphone))
    last = max((i for i, there in enumerate(came) if there), default=-1)
    lost = 0.02 * came[: last + 1].count(False)
    assert sum(s for what, s in found if what == "sound") == pytest.approx(0.02 * sum(came))
    assert sum(s for what, s in found if what == "dropped") == pytest.approx(lost)


def test_a_pause_is_no_lag():
    now = [0.0]
    with BrowserMicrophone(RATE, seconds=600, clock=lambda: now[0]) as microphone:

        def speak(second: int) -> None:
            now[0] += 1.0
            microphone.receive_audio(next(frames(np.zeros(RATE), second * RATE, RATE)))

        speak(0)
        heard = iter(microphone)
        next(heard)
        now[0] += 36.0  # the page is paused
        later = Timer(1.5, speak, [1])
        later.start()
        next(heard)
        assert microphone.behind_seconds(2.0) == 0.0


def test_sound_neither_goes_back_nor_comes_faster_than_anybody_speaks():
    now = [0.0]
    with BrowserMicrophone(RATE, seconds=600, clock=lambda: now[0]) as microphone:
        for frame in frames(np.zeros(RATE)):
            microphone.receive_audio(frame)
        with pytest.raises(RefusedError, match="in order"):
            microphone.receive_audio(next(frames(np.zeros(320), 320)))
        far = 200 * RATE
        with pytest.raises(RefusedError, match="faster"):
            microphone.receive_audio(next(frames(np.zeros(320), far)))
        now[0] = 200.0
        microphone.receive_audio(next(frames(np.zeros(320), far)))
