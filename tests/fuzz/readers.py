"""Every reader of files, with what a sound file of its kind is, and what is done with one.

What a reader accepts must be usable: each entry goes on from reading to a first use.
"""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import wave
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import click
import numpy as np
import soundfile

from monitor import Monitor, MonitorSettings, Population
from monitor.alerts import Conformal, Threshold
from monitor.anonymisers.recording import JOURNAL, Journal, note_target
from monitor.corpus import Columns, find
from monitor.corpus.trials import read_trial_lists
from monitor.errors import CorpusError, SourceError, UsageError
from monitor.events.declaration import to_json
from monitor.events.reading import Reading
from monitor.events.schema import read_run
from monitor.files import write_text
from monitor.lab.attacks.results import read_results, results_json
from monitor.lab.attacks.scoreboard import Scoreboard
from monitor.lab.audit.auditing import audit_attack
from monitor.lab.audit.document import audit_csv, audit_page
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.input.embeddings import read_embeddings
from monitor.lab.evaluation.input.groups import Attribute, read_attribute, read_conditions
from monitor.lab.evaluation.input.score_file import ScoreCell, ScoreFile, write_score_file
from monitor.lab.evaluation.input.scores import read_labels, read_scores
from monitor.lab.evaluation.listed import ListedTrials
from monitor.lab.evaluation.voiceprivacy import SpeakerVectors, VoicePrivacyResults
from monitor.lab.experiment.report import KIND
from monitor.lab.experiment.running import check_folder
from monitor.ledger import Ledger, LedgerSession
from monitor.maths.condition import ROW
from monitor.population.population import load_rank_models, save_rank_models
from monitor.safe_text import is_printable, printable
from monitor.sinks.jsonl import JsonLines
from monitor.sources.file import File
from monitor.sources.frames import FramesFile, Header, write_frames
from monitor.sources.pipe import Pipe
from monitor.stream.checkpoint import Checkpoint
from monitor.stream.clocks import check_words
from monitor.stream.records import RunTotals, start_event
from monitor.tables import need
from monitor.training import enrol
from monitor.transcripts.formats import SUFFIXES, read_transcript
from monitor.transcripts.turn_formats import read_turns
from monitor.types import AnyArray
from tests.fuzz.mutations import bytes_of, json_of, npz_of, sqlite_of, text_of
from tests.lab.attacks.made import results as attack_results
from tests.lab.evaluation import kits
from tests.ledger.test_ledger import listen
from tests.sounds import RATE, synthetic
from tests.stream.streams import two_features
from tests.stream.test_heard import both
from tests.transcripts.formats import written
from tests.web import records

__all__ = ["READERS", "Reader"]

MOST_BLOCKS = 2000
OPTIONS = """[replay]
population = "us.npz"
features = ["f0"]
step = 0.5
alert = ["bits>3 for 5 s after 10 s", "evidence_bits>1"]
stop-on-alert = true
budget = "8bits"
[listen]
watch = 'me'
"""
RULES = """bits>3
bits>3 for 5 s
evidence_bits_low >= 1.5 for 10s after 30 s
f0.rank_bits>2 bits after 10 s
among.1e6.bits>.5
"""


@dataclass(frozen=True)
class Reader:
    """One kind of file.

    Attributes:
        name: what a test and a failure call it.
        file: what the damaged file is called.
        make: a sound one, written into a folder.
        mutate: what is done to its bytes.
        use: reading it, and a first use of what was read.
        share: how many inputs it gets, in parts: fewer where one takes long.
    """

    name: str
    file: str
    make: Callable[[Path], None]
    mutate: Callable[[Random, bytes, Path], bytes]
    use: Callable[[Path], object]
    share: float = 1.0


def _plain(mutate: Callable[[Random, bytes], bytes]) -> Callable[[Random, bytes, Path], bytes]:
    return lambda random, data, _: mutate(random, data)


def _json(random: Random, data: bytes) -> bytes:
    if random.random() < 0.05:
        return random.choice((b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"", b"9" * 5000))
    return json_of(random, json.loads(data)).encode("utf-8", "surrogatepass")


def _lines(random: Random, data: bytes, folder: Path) -> bytes:
    """One or a few of the JSON lines changed."""
    if random.random() < 0.2:
        return bytes_of(random, data)
    lines = data.decode().splitlines()
    for _ in range(random.choice((1, 1, 3))):
        at = random.randrange(len(lines))
        try:
            lines[at] = json_of(random, json.loads(lines[at]))
        except (ValueError, RecursionError):  # changed before
            continue
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _one_reading(monitor: Monitor, *features: str) -> None:
    heard = both(3.0, 1)
    if features:
        heard = replace(heard, tracks={name: heard.tracks[name] for name in features})
    for reading in monitor.push(heard):
        reading.record()


def _use_population(path: Path) -> None:
    population = Population.load(path)
    for watch in (None, population.names[0]):
        _one_reading(Monitor(population, watch=watch))


def _make_enrolled(path: Path) -> None:
    """People enrolled from sound: with all that enrolment writes down beside their templates."""
    voices = path.parent / "voices"
    for number, name in enumerate(("ann", "bob")):
        folder = voices / name
        folder.mkdir(parents=True, exist_ok=True)
        sound = synthetic(8.0, 110.0 + 60 * number, number)
        soundfile.write(folder / "talk.wav", sound, RATE)
    enrol(find(voices), features=["f0"]).population.save(path)


def _use_enrolled(path: Path) -> None:
    population = Population.load(path)
    settings = MonitorSettings(rank_models=two_features().rank_models)
    _one_reading(Monitor(population, ("f0",), population.names[0], settings=settings), "f0")


def _use_rank_model(path: Path) -> None:
    settings = MonitorSettings(rank_models=load_rank_models(path)[0])
    _one_reading(Monitor(two_features(), ("f0", "timbre"), "s1", settings=settings))


def _parts() -> tuple[Monitor, RunTotals, list[Threshold]]:
    monitor = Monitor(two_features(), ("f0", "timbre"), watch="s1", on_change="note")
    return monitor, RunTotals(), [Threshold("bits", -9.0, 1.0)]


def _make_checkpoint(path: Path) -> None:
    monitor, tally, rules = _parts()
    for reading in monitor.push(both(12.0, 2)):
        tally.count(reading)
        rules[0].update(reading)
    Checkpoint(path, {"step": 1.0}).save(monitor, tally, rules, 100)


def _use_checkpoint(path: Path) -> None:
    monitor, tally, rules = _parts()
    Checkpoint(path, {"step": 1.0}).load(monitor, tally, rules)
    for reading in monitor.push(both(16.0, 2)):
        tally.count(reading)
        rules[0].update(reading)
    tally.state()


def _make_ledger(path: Path) -> None:
    listen(path, 1, 12.0)
    listen(path, 2, 12.0)
    listen(path, 3, 12.0, watch="s2", features=("f0",))
    for beside in path.parent.glob(f"{path.name}-*"):
        beside.unlink()


def _use_ledger(path: Path) -> None:
    with Ledger(path) as ledger:
        for record in ledger.export():
            json.dumps(record, allow_nan=False).encode()
        for speaker in ("s1", "s2"):
            ledger.history(speaker)
    monitor = Monitor(two_features(), ("f0", "timbre"), watch="s1")
    session = LedgerSession(Ledger(path), monitor)
    try:
        session.begin(start_event(monitor, ["talk"]))
        _one_reading(monitor)
    finally:
        session.close()


def _make_run(path: Path) -> None:
    said = {"session": 1, "time": "2026-01-01T00:00:00Z", "seconds": 1.0, "speech": 1.0}
    carried = {"sessions": 1, "speech": 9.0, "history": [{**said, "bits": 0.5}]}
    change = {"since_seconds": 3.0, "features": ["f0"]}
    gap = {"type": "gap", "reason": "overflow", "lost_seconds": 0.5, "detail": ""}
    notice = {"type": "notice", "kind": "channels", "level": "warning", "recording": "talk.wav"}
    sink = JsonLines(path)
    for record in (
        records.start(carried=carried),
        records.reading(1, bits=0.5),
        records.reading(5, bits=2.5, change=change),
        records.alert(5),
        {**gap, "seconds": 6.0},
        {"type": "change", **change, "seconds": 7.0, "action": "reset", "margin_before": 1.0},
        {**notice, "seconds": 8.0, "text": "they differ", "fields": {"decibels": 1.0, "of": ["a"]}},
        records.reading(9, bits=3.5),
        records.alert(9, "cleared"),
        records.end(9),
    ):
        sink.write_record(record)
    sink.close()


def _use_results(path: Path) -> None:
    audit = audit_attack(read_results(path))
    write_text(audit_page(audit), path.with_suffix(".html"))
    write_text(audit_csv(audit), path.with_suffix(".csv"))


def _use_scoreboard(path: Path) -> None:
    board = Scoreboard.read(path)
    for suffix in (".html", ".md", ".json"):
        board.save(path.with_name(f"saved{suffix}"))


def _use_experiment(path: Path) -> None:
    with suppress(UsageError):  # it holds something else
        check_folder(path.parent, path.parent / "corpus")


def _make_journal(path: Path) -> None:
    with Journal(path.parent, ("a",), 7) as journal:
        note_target(journal.path, "a.wav", ("1", "2"))


def _use_run(path: Path) -> None:
    from monitor import Readings
    from monitor.plots.curve import plot_run
    from monitor.web.hub import Hub
    from monitor.web.metrics import exposition

    found = read_run(path)
    hub = Hub(recorded=True)
    for record in found:
        hub.write(record)
    exposition(hub)
    plot_run(found, path.with_suffix(".svg"))
    Readings.read(path).write(path.with_suffix(".csv"), posterior=True)


def _make_frames(path: Path) -> None:
    frames = both(4.0, 1)
    header = Header(sound=np.ones(ROW, np.int64), landmarks=np.arange(9, dtype="<u2"))
    sizes = {"f0": 10, "timbre": 3}
    write_frames(path, frames.speech, frames.tracks, sizes, {"f0": 0.01}, header=header)


def _make_json_frames(path: Path) -> None:
    lines = [{"schema": 1, "sizes": {"f0": 10}}]
    for i in range(1, 40):
        span = [i / 100 - 0.01, i / 100]
        lines.append({"seconds": i / 100, "speech": i % 3 > 0, "f0": i % 10, "f0_span": span})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _use_frames(path: Path) -> None:
    for run in FramesFile(path):
        list(_parts()[0].push(run))


def _make_wav(path: Path) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(np.arange(2000, dtype="<i2").tobytes())


def _encoded(samples: np.ndarray, form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format=form, **options)
    return file.getvalue()


def _make_chain(form: str) -> Callable[[Path], None]:
    """Two streams in one file."""

    def make(path: Path) -> None:
        path.write_bytes(b"".join(_encoded(synthetic(0.5, seed=n), form) for n in range(2)))

    return make


def _make_mp3(path: Path) -> None:
    """One of several bit rates without the frame that says how long it is."""
    samples = np.concatenate([np.random.default_rng(1).normal(0, 0.2, RATE), np.zeros(RATE)])
    data = _encoded(samples, "MP3", bitrate_mode="VARIABLE")
    path.write_bytes(data[data.find(data[:2], 2) :])


def _heard(blocks: Iterable[object]) -> None:
    for _ in islice(blocks, MOST_BLOCKS):
        pass


def _make_scores(path: Path) -> None:
    rows = [f"s{i % 4} u{j} {i * j % 7}.5" for i in range(4) for j in range(8)]
    path.write_text("\n".join(rows) + "\n")
    key = [
        f"s{i} u{j} {'target' if j % 4 == i else 'nontarget'}" for i in range(4) for j in range(8)
    ]
    (path.parent / "key").write_text("\n".join(key) + "\n")


def _evaluated(read: object) -> None:
    evaluate(read.comparisons, settings=EvaluationSettings(replicates=5))  # type: ignore[attr-defined]


def _make_matrix(path: Path) -> None:
    rows = ["trial,target,ann,bob,cyd"]
    rows += [f"u{j},{('ann', 'bob', 'cyd')[j % 3]},{j},{j % 3},{0.5 * j}" for j in range(9)]
    path.write_text("\n".join(rows) + "\n")


def _make_score_parquet(path: Path) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    _make_matrix(path.with_suffix(".csv"))
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(path.with_suffix(".csv")), path)


def _make_array(path: Path) -> None:
    np.savez(path, scores=np.random.default_rng(1).random((9, 3)), target=np.arange(9) % 3)


def _make_score_file(path: Path) -> None:
    target, names = np.arange(9) % 3, ("ann", "bob", "cyd")
    made = ScoreMatrix(np.random.default_rng(1).random((9, 3)), target, names, "f0")
    cell = ScoreCell("same", 10.0, 30.0, {"f0": made}, ["1"] * 9, np.zeros(9), ("f0",))
    write_score_file(path, [cell], Attribute("t", "gender", dict.fromkeys(names, "f")))


def _use_score_file(path: Path) -> None:
    held = ScoreFile.from_file(path)
    if held is not None:
        for entry in held.choose(()):
            _evaluated(read_scores(path, choose=entry.words))


def _make_npy(path: Path) -> None:
    np.save(path, np.random.default_rng(1).random((9, 3)))
    (path.parent / "key").write_text("0\n1\n2\n" * 3)


def _make_vectors(path: Path) -> None:
    values = np.random.default_rng(1).normal(size=(6, 4))
    np.savez(path, embeddings=values, speakers=np.array(["a", "b", "c"] * 2))


def _archive_of(arrays: Iterable[tuple[str, AnyArray]], *, text: bool = False) -> bytes:
    """An archive of Kaldi; keys may repeat."""
    matio, file = need("kaldiio.matio"), io.BytesIO()
    write = matio.write_array_ascii if text else matio.write_array
    for key, array in arrays:
        file.write(f"{key} ".encode())
        write(file, array)
    return file.getvalue()


def _make_archive(path: Path, *, text: bool = False) -> None:
    values = np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
    (path.parent / "utt2spk").write_text("".join(f"u{i} s{i % 3}\n" for i in range(6)))
    path.write_bytes(_archive_of(((f"u{i}", row) for i, row in enumerate(values)), text=text))


def _make_archive_list(path: Path) -> None:
    _make_archive(path.with_suffix(".ark"))
    data = path.with_suffix(".ark").read_bytes()
    places = [data.index(f"u{i} ".encode()) + 3 for i in range(6)]
    path.write_text("".join(f"u{i} e.ark:{place}\n" for i, place in enumerate(places)))


def _archive(random: Random, data: bytes) -> bytes:
    """Bytes damaged, or another vector: not finite, of another shape or type, or a key again."""
    if random.random() < 0.5:
        return bytes_of(random, data)
    values = np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
    arrays: list[tuple[str, AnyArray]] = [(f"u{i}", row) for i, row in enumerate(values)]
    key, row = arrays[(at := random.randrange(6))]
    others = (row[:3], row[None], values, row[:0], row.astype(np.float64), row * np.nan,
              row * np.inf, row * 0, row * np.float32(1e38))  # fmt: skip
    arrays[at] = random.choice((key, "u0", "x\x1b")), random.choice(others)
    return _archive_of(arrays, text=random.random() < 0.5)


def _make_csv_vectors(path: Path) -> None:
    values = np.random.default_rng(1).normal(size=(6, 3)).round(3).tolist()
    rows = ["speaker,session,a,b,c"]
    rows += [f"s{i % 3},{i}," + ",".join(map(str, row)) for i, row in enumerate(values)]
    path.write_text("\n".join(rows) + "\n")


def _make_manifest(path: Path) -> None:
    for name in ("a.wav", "b.wav"):
        _make_wav(path.parent / name)
    path.write_text("path,speaker,session\na.wav,ann,1\nb.wav,bob,2\n", encoding="utf-8")


def _make_kaldi(path: Path) -> None:
    for name in ("a.wav", "b.wav"):
        _make_wav(path.parent / name)
    (path.parent / "utt2spk").write_text("u1 ann\nu2 bob\nu3 bob\n")
    path.write_text("u1 a.wav\nu2 sox x |\nu3 flac -c -d -s 'b.wav' |\n")


def _make_metadata(path: Path) -> None:
    for name in ("a.wav", "b.wav"):
        _make_wav(path.parent / name)
    rows = [{"file_name": f"{name}.wav", "who": name, "day": 1} for name in "ab"]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def _make_splits(path: Path) -> None:
    """A data set whose folders are its splits, with the table that names the speakers."""
    for split, name in (("train", "a"), ("test", "b")):
        (path.parent / split).mkdir(exist_ok=True)
        _make_wav(path.parent / split / f"{name}.wav")
    path.write_text("file_name,who,day\ntrain/a.wav,ann,1\ntest/b.wav,bob,2\n", encoding="utf-8")


def _make_common_voice(path: Path) -> None:
    (path.parent / "clips").mkdir(exist_ok=True)
    for name in "ab":
        _make_wav(path.parent / "clips" / f"{name}.wav")
    path.write_text("client_id\tpath\tage\nx1\ta.wav\t\ny2\tb.wav\tteens\n", encoding="utf-8")


def _use_splits(path: Path) -> None:
    """Whatever is wrong with the table, splits are no speakers."""
    for columns in (Columns(), Columns("who", "day")):
        with suppress(CorpusError):
            speakers = set(find(path.parent, columns=columns).speakers)
            if speakers & {"train", "test", "clips"}:
                raise ValueError(f"splits are enrolled: {speakers}")


def _make_packed_cuts(path: Path) -> None:
    _make_cuts(path)
    path.write_bytes(gzip.compress(path.read_bytes()))


def _packed(random: Random, data: bytes, folder: Path) -> bytes:
    """The archive damaged, or what is in it; or many times as much in it."""
    if random.random() < 0.5:
        return bytes_of(random, data)
    text = _lines(random, gzip.decompress(data), folder)
    if random.random() < 0.1:
        text += random.choice((b" ", b"\n", b"[]\n")) * (1 << 22)
    return gzip.compress(text, 1)


def _make_typed_parquet(path: Path) -> None:
    """The types that name speakers: views, encoded texts, integers with nulls, structs."""
    import pyarrow
    import pyarrow.parquet

    _make_wav(path.parent / "a.wav")
    heard = pyarrow.array([(path.parent / "a.wav").read_bytes()] * 3, pyarrow.binary_view())
    who = pyarrow.array([{"id": "ann"}, {"id": "bob"}, None])
    table = pyarrow.table({
        "audio": pyarrow.StructArray.from_arrays([heard], ["bytes"]),
        "who": pyarrow.array(["ann", "bob", None], pyarrow.string_view()),
        "day": pyarrow.array([1.0, 2.0, None]),
        "speaker": who,
        "mood": pyarrow.array(["a", "b", None]).dictionary_encode(),
    })  # fmt: skip
    pyarrow.parquet.write_table(table, path)


def _make_cuts(path: Path) -> None:
    _make_wav(path.parent / "a.wav")
    source = {"type": "file", "channels": [0], "source": "a.wav"}
    recording = {"id": "a", "sources": [source], "sampling_rate": 16000, "num_samples": 9}
    path.write_text(
        "".join(
            json.dumps(
                {
                    "id": "c", "type": "MonoCut", "start": start, "duration": 0.1, "channel": 0,
                    "recording": recording, "custom": {"day": 1},
                    "supervisions": [
                        {"recording_id": "a", "start": 0, "duration": 0.1, "speaker": who}
                    ],
                }
            ) + "\n"
            for start, who in [(0.0, "ann"), (0.1, "bob"), (0.2, "ann")]
        )
    )  # fmt: skip


def _make_parquet(path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    _make_wav(path.parent / "a.wav")
    audio = [{"bytes": (path.parent / "a.wav").read_bytes(), "path": "a.wav"}] * 2
    table = pyarrow.table({"audio": audio, "who": ["ann", "bob"], "day": [1, 2]})
    pyarrow.parquet.write_table(table, path)


def _use_data_set(path: Path) -> None:
    columns = Columns() if "cuts" in path.name else Columns("who", "day")
    corpus = find(path, columns=columns)
    for problem in corpus.problems:
        _is_a_line(problem)
    for recording in corpus:
        with suppress(SourceError):
            _heard(File(recording.path))


def _is_a_line(text: str) -> None:
    if not text or not is_printable(text):
        raise ValueError(f"no printable line: {text!a}")


def _make_lists(path: Path) -> None:
    _make_kaldi(path.parent / "wav.scp")
    (path.parent / "enrolls").write_text("u1\n")
    (path.parent / "spk2gender").write_text("ann f\nbob m\n")
    (path.parent / "trials_f").write_text("ann u3 nontarget\nbob u2 target\nbob u3 target\n")


def _use_lists(path: Path) -> None:
    corpus, lists = find(path.parent), read_trial_lists(path.parent)
    if lists is not None:
        chosen = lists.trials(corpus)
        for note in (*lists.notes(corpus), *chosen.problems):
            _is_a_line(note)
        listed = ListedTrials.from_folder(path.parent)
        columns = {name: i for i, name in enumerate(lists.speakers)}
        spoken = {recording.session: recording.speaker for recording in corpus}
        rows = {name: i for i, name in enumerate(spoken)}
        scores = np.arange(len(rows) * len(columns), dtype=float).reshape(len(rows), -1)
        assert all(
            0 <= row.rate <= 1
            for row in listed.rows("ASV_eval", "oo", scores, columns, rows, spoken)
        )


def _use_options(path: Path) -> None:
    """What --config gives to a command, as far as click looks at it; nothing is run."""
    from monitor.cli import COMMANDS, cli
    from monitor.cli.config import defaults_from

    command = cli.get_command(click.Context(cli), "replay")
    assert command is not None
    try:
        defaults = defaults_from(path, list(COMMANDS), command)
        command.make_context("replay", ["talk.wav"], default_map=defaults)
    except click.ClickException as error:
        _is_a_line(printable(error.format_message()))


def _use_rules(path: Path) -> None:
    """Rules of alerts, a line each, taken through speech and silence."""
    for text in path.read_bytes().decode(errors="replace").split("\n"):
        try:
            Conformal.parse_field(text)
            rule = Threshold.parse(text)
        except UsageError as error:
            _is_a_line(str(error))
            continue
        json.dumps(to_json(rule.alert_terms()), allow_nan=False)
        for second in range(20):
            heard = {"seconds": float(second), "speech": float(second), "bits": second / 2}
            for alert in rule.update(Reading.from_record({**records.reading(second), **heard})):
                json.dumps(alert.record(), allow_nan=False)


def _use_addresses(path: Path) -> None:
    from monitor.alerts.actions.receivers import Webhook
    from monitor.cli.monitor_options import addresses

    for url in addresses("--webhook", (f"@{path}",)):
        Webhook(url)


def _use_head(path: Path) -> None:
    from monitor.web.guard import Access, cookie_name, may_ask_for

    header = path.read_bytes().decode("latin-1")
    entry = Access("correct horse battery")
    for line in header.split("\n"):
        may_ask_for(line, "127.0.0.1")
        cookie_name(line)
        entry.knows(line)
        entry.end(line)
        entry.accepts(line)


EAF, TEXTGRID = (
    Path(__file__).with_name(name).read_text("utf-8") for name in ("talk.eaf", "talk.TextGrid")
)
BLANKS = "".join(
    f"SPEAKER my talk 1 {begin} 2 <NA> <NA> {label} <NA>\n"
    for begin, label in [(0.5, "Speaker 1 <NA>"), (2, "Speaker 2 0.5"), (4, "<NA>"), (6, "Ann B")]
)
TURNS = {
    "rttm": "".join(
        f"SPEAKER call 1 {begin} {lasts} <NA> <NA> {label} <NA> <NA>\n"
        for begin, lasts, label in [(0.5, 2, "ann"), (2, 1.5, "bob"), (4, 3, "ann")]
    ),
    "txt": "0.5\t2.5\tann\n\\\t100\t3000\n2\t3.5\tbob\n",
    "json": json.dumps([{"start": 0.5, "end": 2.5, "speaker": "ann"}] * 2),
    "vtt": "WEBVTT\n\n00:00.500 --> 00:02.500\n<v ann>so it\n\n",
}


def _use_turns(path: Path) -> None:
    turns = read_turns(path)
    sum(turn.seconds for turn in turns.cut(3600.0).alone)


def _use_transcript(path: Path) -> None:
    check_words(read_transcript(path).words())


def _make_kit(path: Path) -> None:
    """The embeddings of one data set in this folder, the rest of the kit below it."""
    root = path.parent / "kit"
    if not root.is_dir():
        kits.kit(root)
    own = root / "exp" / "asv_orig" / "cosine_out" / "emb_xvect" / "libri_dev_trials_f"
    for name in ("id2idx", "idx2spk", "speaker_vectors.npy"):
        (path.parent / name).write_bytes((own / "utt-level" / name).read_bytes())
    listed = root / "data" / "libri_dev_trials_f" / "trials"
    (path.parent / "trials").write_bytes(listed.read_bytes())


def _use_kit(path: Path) -> None:
    results = VoicePrivacyResults.find(path.parent / "kit" / "exp" / "asv_orig")
    entry = replace(results.choose(["f", "oo"])[0], listed=path.parent / "trials")
    vectors = SpeakerVectors.from_folder(path.parent)
    assert all(vectors.row.get(name) is not None for name in vectors.row)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("id2idx", "idx2spk", "speaker_vectors.npy"):
            own = Path(folder, "utt-level", name)
            own.parent.mkdir(exist_ok=True)
            own.write_bytes((path.parent / name).read_bytes())
        read = results.read(replace(entry, trials=Path(folder)), "fuzzed")
    evaluate(read.comparisons, settings=EvaluationSettings(replicates=0, only=("verification",)))


def _text(content: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_text(content, encoding="utf-8")

    return make


_NPZ, _TEXT, _BYTES = _plain(npz_of), _plain(text_of), _plain(bytes_of)

READERS = (
    Reader("population", "p.npz", lambda p: two_features().save(p), _NPZ, _use_population),
    Reader("enrolled", "e.npz", _make_enrolled, _NPZ, _use_enrolled, 0.5),
    Reader("rank_model", "rank_model.npz",
           lambda p: save_rank_models(p, two_features().rank_models), _NPZ, _use_rank_model),
    Reader("checkpoint", "run.jsonl.state", _make_checkpoint, _NPZ, _use_checkpoint),
    Reader("ledger", "me.db", _make_ledger, sqlite_of, _use_ledger, 0.5),
    Reader("run", "run.jsonl", _make_run, _lines, _use_run, 0.5),
    Reader("attack-results", "results.json",
           _text(results_json(attack_results())),
           _plain(_json), _use_results, 0.5),
    Reader("scoreboard", "board.json", _text(Scoreboard.shipped().json()),
           _plain(_json), _use_scoreboard, 0.5),
    Reader("experiment", "results.json", _text(json.dumps({"kind": KIND})),
           _plain(_json), _use_experiment, 0.3),
    Reader("journal", JOURNAL, _make_journal, _lines,
           lambda p: Journal(p.parent, ("a",), 7).close(), 0.5),
    Reader("frames-npz", "f.npz", _make_frames, _NPZ, _use_frames),
    Reader("frames-jsonl", "f.jsonl", _make_json_frames, _lines, _use_frames),
    Reader("wav-pipe", "a.wav", _make_wav, _BYTES,
           lambda p: _heard(Pipe(io.BytesIO(p.read_bytes())))),
    Reader("wav-file", "a.wav", _make_wav, _BYTES, lambda p: _heard(File(p))),
    *(Reader(f"{kind}-chain", f"a.{kind}", _make_chain(kind.upper()), _BYTES,
             lambda p: _heard(File(p)), 0.5) for kind in ("wav", "ogg", "mp3", "flac")),
    Reader("mp3-bare", "a.mp3", _make_mp3, _BYTES, lambda p: _heard(File(p)), 0.5),
    *(Reader(f"transcript-{suffix[1:]}", f"talk{suffix}", _text(written(suffix[1:])), _TEXT,
             _use_transcript, 0.5) for suffix in SUFFIXES),
    *(Reader(f"turns-{kind}", f"talk.{kind}", _text(text), _TEXT, _use_turns, 0.5)
      for kind, text in TURNS.items()),
    Reader("turns-rttm-blanks", "my talk.rttm", _text(BLANKS), _TEXT, _use_turns, 0.5),
    Reader("turns-eaf", "talk.eaf", _text(EAF), _TEXT, _use_turns, 0.5),
    Reader("turns-textgrid", "talk.TextGrid", _text(TEXTGRID), _TEXT, _use_turns, 0.5),
    Reader("manifest", "manifest.csv", _make_manifest, _TEXT, lambda p: find(p.parent)),
    Reader("kaldi", "wav.scp", _make_kaldi, _TEXT, lambda p: find(p.parent)),
    Reader("metadata", "metadata.jsonl", _make_metadata, _lines, _use_data_set),
    Reader("splits", "metadata.csv", _make_splits, _TEXT, _use_splits),
    Reader("common-voice", "validated.tsv", _make_common_voice, _TEXT, _use_splits, 0.5),
    Reader("utt2spk", "utt2spk", lambda p: _make_kaldi(p.parent / "wav.scp"), _TEXT,
           lambda p: find(p.parent), 0.5),
    Reader("cuts", "cuts.jsonl", _make_cuts, _lines, _use_data_set),
    Reader("cuts-packed", "cuts.jsonl.gz", _make_packed_cuts, _packed, _use_data_set, 0.5),
    Reader("parquet-typed", "x.parquet", _make_typed_parquet, _BYTES, _use_data_set, 0.5),
    Reader("parquet", "x.parquet", _make_parquet, _BYTES, _use_data_set),
    Reader("trials", "trials_f", _make_lists, _TEXT, _use_lists),
    Reader("enrolls", "enrolls", _make_lists, _TEXT, _use_lists, 0.5),
    Reader("options", "us.toml", _text(OPTIONS), _TEXT, _use_options),
    Reader("rules", "rules", _text(RULES), _TEXT, _use_rules),
    Reader("score-list", "scores", _make_scores, _TEXT,
           lambda p: _evaluated(read_scores(p, p.parent / "key")), 0.5),
    Reader("score-key", "key", lambda p: _make_scores(p.parent / "scores"), _TEXT,
           lambda p: _evaluated(read_scores(p.parent / "scores", p)), 0.5),
    Reader("score-table", "s.csv", _make_matrix, _TEXT, lambda p: _evaluated(read_scores(p)), 0.5),
    Reader("score-parquet", "s.parquet", _make_score_parquet, _BYTES,
           lambda p: _evaluated(read_scores(p)), 0.5),
    Reader("score-npz", "s.npz", _make_array, _NPZ, lambda p: _evaluated(read_scores(p)), 0.5),
    Reader("score-file", "s.npz", _make_score_file, _NPZ, _use_score_file, 0.5),
    Reader("score-npy", "s.npy", _make_npy, _BYTES,
           lambda p: _evaluated(read_scores(p, p.parent / "key")), 0.5),
    Reader("embeddings-npz", "e.npz", _make_vectors, _NPZ,
           lambda p: _evaluated(read_embeddings(p, p)), 0.5),
    *(Reader(f"embeddings-ark{kind}", "e.ark", partial(_make_archive, text=bool(kind)),
             _plain(_archive), lambda p: _evaluated(read_embeddings(p, p)), 0.5)
      for kind in ("", "-text")),
    Reader("embeddings-scp", "e.scp", _make_archive_list, _TEXT,
           lambda p: _evaluated(read_embeddings(p, p)), 0.5),
    Reader("embeddings-csv", "e.csv", _make_csv_vectors, _TEXT,
           lambda p: _evaluated(read_embeddings(p, p)), 0.5),
    Reader("embeddings-jsonl", "e.jsonl",
           _text("".join(f'{{"speaker": "{who}", "embedding": [{i}, 1.0]}}\n'
                         for i, who in enumerate(("ann", "bob", "ann", "bob")))), _TEXT,
           lambda p: _evaluated(read_embeddings(p, p)), 0.5),
    Reader("labels", "utt2spk", _text("u1 ann\nu2 bob\nu3 ann\n"), _TEXT, read_labels),
    Reader("groups", "spk2gender", _text("ann f\nbob m\ncyd m\n"), _TEXT, read_attribute),
    Reader("conditions", "conditions.csv",
           _text("trial,line,seconds\nu1,mobile,4.2\nu2,landline,31\n"), _TEXT, read_conditions),
    *(Reader(f"kit-{name.partition('.')[0]}", name, _make_kit, mutate, _use_kit, 0.3)
      for name, mutate in (("id2idx", _TEXT), ("idx2spk", _TEXT), ("trials", _TEXT),
                           ("speaker_vectors.npy", _BYTES))),
    Reader("addresses", "hooks", _text("# mine\nhttps://a:b@example.org/x?y=1\n"), _TEXT,
           _use_addresses),
    Reader("request-head", "head", _text("localhost:80\nmonitor_page_80=a; x=y\n[::1]:80\n"),
           _TEXT, _use_head),
)  # fmt: skip
