"""Whatever makes no sense is refused in one line, before anything is written or lost."""

import json
import os
import shlex
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks.simulation import Simulation, write_corpus
from monitor.ledger import Ledger
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from tests.cli.conftest import Result, captions
from tests.lab.evaluation import kits
from tests.sounds import RATE, synthetic
from tests.web import records

WATCH = "replay talk.npz -p us.npz -w 000003 --jsonl x"
EACH = "replay talks --features f0 --each --summary out.csv"
MEETING = "replay meeting.wav --turns meeting.rttm"
WORDS = "replay talk.wav -p worded.npz"
PITCH = "replay talk.wav --features f0"
SCORES = "evaluate strong.npy --labels labels.txt"
ATTACK = ("attack voices -o new --features f0 --seconds 2 --template 6 --trials 3 --segments 1,2 "
          "--jobs 1")  # fmt: skip
PROTECT = "protect voices/r0/day0.wav"
BUDGET = "protect talk.wav --budget 6 -w me -o new.wav"

USAGE = {
    "": [
        ("lisen", "No such command 'lisen' (did you mean 'listen'?); see monitor --help"),
        ("scrub talk.flac", "scrub is now: monitor protect FILE --budget BITS"),
        ("replay --wach me talk.wav", "No such option"),
        ("replay", "Missing argument 'RECORDING...'; see monitor replay --help"),
        ("replay mic: --features f0", "use monitor listen"),
        ("replay - -", "standard input (-)"),
        ("replay talk.npz -p us.npz --protect none", "contains frames, not audio that could be"),
        ("replay talk.npz -p us.npz --transcript talk.vtt", "leave out --transcript"),
        ("replay talk.npz -p us.npz :template-seconds=60", "the longest has 20"),
        ("replay phones.npz -p us.npz", "phones.npz has no frames of f0, only of phones"),
        ("replay talk.wav talk.wav --part 1", "--part is for one"),
        ("replay talk.wav meeting.wav --per-channel", "--per-channel is for one recording"),
        ("replay talk.wav --raw 16000:1:s16le", "give - as the file"),
        ("replay talk.wav --protect tokens:15", "tokens are frames, not audio"),
        ("replay talks --each", "add --summary out.csv, or an --alert"),
        ("replay talks --each --alert bits>3 --resume", "--summary out.csv"),
        ("replay talks --each --summary out.xlsx", ".csv or .parquet"),
        ("doctor --completion tcsh", "'tcsh' is not one of 'bash', 'zsh', 'fish'"),
    ],
    WATCH: [
        ("--warn 30s", "--warn needs a threshold: add --alert 'bits>6'"),
        ("--alert bits", "leave the threshold to --false-alarms"),
        ("--alert 'bots>3'", "did you mean bits?"),
        ("--alert 'evidence_bits>3'", "calibrate again"),
        ("--alert 'bits>3' --webhook example.org", "--webhook needs an address"),
        *(
            (f"--alert 'bits>3' --webhook https://{address}", "use @FILE or MONITOR_WEBHOOK")
            for address in (
                "ann:secret@host/",
                "hooks.slack.com/services/T000/B000/XXXX",
                "host/api/webhooks/1234567890/aB3-dE5fG7hI9jK1lM2nO4pQ6",
                "host/hook/0f8fad5b-d9cb-469f-a165-70867728950e",
                "host/alert?token=abc",
                "host/alert?to=9mXq3TzR7bWc2KfLp8Vd",
                "9mXq3TzR7bWc2KfLp8Vd@host/",
            )
        ),
        *((f"--alert 'bits>3' --notify {url}", "use @FILE or MONITOR_NOTIFY")
          for url in ("ntfys://ann:secret@host/topic", "discord://41742162/JHMHI8qBe7bk2ZwO5U7",
                      "tgram://123456789:AAabcdefghijklmnopqrstuvwxyz123456/12345")),
        ("--web 0 :web-token=@letter.txt", "@letter.txt: "),
        ("--alert 'bits>3' --webhook @/nowhere", "--webhook @/nowhere"),
        ("--alert 'protected.bits>2'", "needs a protected side"),
        ("--budget 8bits", "needs --ledger FILE.db"),
        ("--ledger x.db :on-change=reset", "a ledger adds up one voice"),
        ("--listener acme", "--listener needs --ledger FILE.db"),
        ("--budget 8/30d", "a --budget for a period needs --ledger FILE.db"),
        ("--budget 8/30", "is not a budget such as 8bits or 8/30d"),
        ("--false-alarms 5%", "add --alert bits"),
        ("--alert bits --false-alarms 5", "is not a rate such as 5% or 0.05"),
        ("--alert bits --false-alarms 10%", "monitor calibrate CORPUS -o POPULATION.npz"),
        ("-p known.npz --alert bits --false-alarms 5%", "need the streams of 19 other speakers"),
        ("-p known.npz --alert bits --false-alarms 10% --ledger x.db", "use --budget"),
        ("--jsonl y", "'--jsonl': given 2 times"),
        ("--watch 00003", "watch"),
        (":guides=true", "add --plot FILE.png"),
        ("--plot a.jpg", "use .png, .svg or .pdf"),
        ("--web 0.0.0.0:0", "set MONITOR_WEB_TOKEN"),
        ("--web {taken}", "something else listens there"),
        ("--jobs local", "--jobs local is for many recordings: add --each"),
        ("--jobs four", "is neither a number from 1 nor an address"),
        ("--mqtt mqtt://host", "No such option"),
        ("--step 2", "--step: set step under [replay] in FILE, then run: monitor --c"),
        ("--scheduler local", "--scheduler: use --jobs tcp://HOST:PORT"),
        ("--start 3", "use --part START"),
    ],
    "replay talk.npz -p us.npz": [
        ("--watch 00003", "'00003' is not enrolled; did you mean '0000"),
        ("--ledger x.db", "a ledger needs a watched speaker: use --watch"),
        ("--alert 'f0.rank_bits>1'", "needs a watched speaker"),
        (":step=0.005", "must be a positive multiple of 0.01"),
        ("--part 3-9", "an interval needs an audio file"),
    ],
    "replay crowds.npz -p told.npz": [
        ("--among 5", "smaller than the 6 enrolled: use 6 or more"),
        ("--alert 'evidence_bits>3'", "needs a watched speaker: name one"),
        ("--watch s2 --alert 'among.1e5.bits>3'", "add --among 100000"),
        ("-w s1 -p plain.npz :bystanders=1%", "bystanders cannot be"),
        ("-w s1 --among 30 :bystanders=1%", "over 1 in 30"),
        ("-w s1 --budget 8bits", "use --alert 'bits>8'"),
    ],
    EACH: [
        ("--jsonl r.jsonl", "--jsonl is for one run"),
    ],
    MEETING: [
        ("--per-channel", "--turns or --per-channel"),
        ("--protect mcadams:0.8", "--protect is for one voice"),
        ("--watch 19 --watch 84 --alert bits --false-alarms 10%", "a threshold for one --watch"),
    ],
    WORDS: [
        ("--transcript talk.vtt --features f0", "--features f0 lacks: add style"),
        ("--speaker-in-transcript ann", "needs --transcript, or --features style"),
        ("talk.wav --transcript talk.vtt", "--transcript is for one recording"),
        ("--word-list own.txt", "--word-list: use MONITOR_WORD_LIST=FILE"),
    ],
    PITCH: [
        ("--features f1", "no templates of f1"),
        ("--part 5-4", "must be later than"),
        ("--protect mcadams:speaker", "mcadams:speaker needs the speaker"),
        ("--protect none --ledger a.db --watch 19", "leave out --ledger or"),
        ("--protect none --alert protected.bits --false-alarms 5%", "protected.bits was not cali"),
    ],
    "listen": [
        ("--for 0", "invalid --for 0"),
        ("--turns a.rttm", "use --turns -"),
        ("--features f0 --protect command:cat", "cannot work live: record, then replay"),
        ("--mqtt mqtt://ann:secret@host", "leave it out and set MONITOR_MQTT_PASSWORD"),
        ("--mqtt @us.npz", "cannot read --mqtt @us.npz"),
        ("--mqtt host", "--mqtt needs an address such as mqtt://"),
        (":mqtt-ca=ca.pem", "mqtt-ca needs --mqtt mqtts://HOST"),
        ("--mqtt mqtt://host :mqtt-ca=ca.pem", "mqtts://"),
    ],
    "enrol": [
        ("people", "Missing option '-o' / '--output'"),
        ("--speaker me -o new.npz", "name a DIR, a MANIFEST or recordings"),
        ("twins -o new.npz --features f1", "did you mean f0?"),
        ("voices -o new.npz --features speaker", "speaker needs its network: --speaker-model"),
        ("people -o us.npz", "exists; use --add to add speakers or --replace to overwrite it"),
        ("talk.wav --speaker 'a\x1bb' -o new.npz", "--speaker needs a printable name"),
        ("talk.wav --speaker me --base reference --features f0,style -o new.npz",
         "nor the shipped readers have style: leave it out"),
    ],
    "people": [
        ("us.npz --forget 00000", "no '00000' in us.npz; did you mean"),
        ("me.npz --forget me", "delete the file"),
    ],
    "calibrate people": [
        ("--lengths 0.25", "positive multiple of 0.1 s"),
        ("--trained f0=letter.txt", "--trained letter.txt"),
        ("--trained voice=names.txt", "--trained voice: not calibrated here, only f0"),
        ("-o letter.txt", "letter.txt is not a population"),
        ("--lengths 1 --cohort people", "neither enrolled nor calibrated"),
        ("--lengths 1 --cohort enrolled.npz", "enrolled.npz has no cohort"),
    ],
    "ledger": [
        ("export me.db", "-o FILE.jsonl"),
    ],
    "show": [
        ("", "RUN.jsonl"),
        ("run.csv -o run.csv", "is read by this run"),
        ("run.jsonl --web 0.0.0.0:0", "set MONITOR_WEB_TOKEN"),
        ("run.jsonl :web-token=short", "must have 12 printable characters"),
        ("run.jsonl :web-token=@names.txt", "must have 12 printable characters"),
        *((f"run.jsonl --web={each}", "is not like 8000")
          for each in ("x", "70000", ":80", "-1", "1.5", "'a b:80'", "host:")),
    ],
    "serve": [
        ("--web 0.0.0.0:0 --data new", "certificate"),
        ("--web 0.0.0.0:0 --data new --key page.key", "certificate"),
        ("--web 0.0.0.0:0 --data new --certificate page.pem", "page.pem"),
    ],
    PROTECT: [
        ("-o x.wav", "--method"),
        ("-o x.wav --method none --anonymiser-command cat", "either"),
        ("-o x.wav --method magic", "unknown anonymiser 'magic'"),
        ("-o voices/r0/day0.wav --method none --replace", "recording itself"),
        ("-o x.wav --method usc -w me", "--watch needs --budget BITS"),
        ("-o x.wav --method laplace:9", "laplace is for embeddings"),
        ("-o x.wav --method mcadams:speaker", "--speaker NAME"),
    ],
    "protect": [
        ("voices -o talk.wav --method none", "use a folder, not a file"),
        ("voices -o voices/safe --method none", "outside"),
        ("flat -o new --method mcadams:speaker", "--speaker NAME"),
        ("twins -o new --method none", "both become one.wav"),
        ("people -o new --method mcadams:0.8", "frames, not audio: use --method laplace:15"),
        ("people -o new --method tokens:15", "from recordings, not from frames"),
        *((f"people -o new --method laplace{each}", "laplace")
          for each in ("", ":0", ":1,0", ":x")),
        *((f"voices -o new --method tokens{each}", "tokens:15") for each in ("", ":", ":much")),
    ],
    BUDGET: [
        ("--silence --method usc", "--silence"),
        ("--method usc --anonymiser-command cat", "give either"),
    ],
    "evaluate": [
        ("", "give SCORES, or embeddings with --trials and --enrolment"),
        ("--trials b.npz", "--trials needs --enrolment"),
        ("a.npy b.npy --names one", "--names: 1 names for 2 systems"),
        ("a.npy :query=original", "query and reference go together"),
        ("a.npy --html a.npy", "let the name end in .html"),
        ("a.npy --figures eer,dece", "unknown figure 'dece': did you mean d_ece?"),
        ("strong.npy", "has no speakers"),
        ("nan.npy --labels labels.txt", "score of trial 4 with speaker 1"),
        ("strong.npy --labels labels.html --html labels.html", "labels.html"),
        ("kit --choose zz", "has no zz; it has libri_dev f oo oa mcadams aa m"),
        ("empty", "without cosine_out/emb_xvect"),
        ("kit --voiceprivacy --json", "leave out other figures"),
        ("kit --voiceprivacy --figures all", "leave out other figures"),
    ],
    SCORES: [
        ("--voiceprivacy", "needs VoicePrivacy's folders"),
        ("--among 1", "1 is not a size of a crowd: use whole numbers of people from 2 to"),
        ("--latex=table.txt", ".tex"),
        ("--csv taken.csv", "taken.csv exists"),
        ("--validation v.html --criteria 'x<1'", "invalid criterion"),
        ("--validation v.html --conditions labels.txt", "one trial and its condition"),
        ("--validation taken.html", "taken.csv exists; name another file"),
    ],
    "score people": [
        ("-o a.csv", "let the name end in .npz"),
        ("-o a.npz --scoring max", "f0: no feature has max scoring"),
        ("-o a.npz :group-by=age", "the age of speakers in people is unknown"),
        ("-o a.npz --frames new", "leave out --frames"),
        ("-o us.npz", "use --replace"),
    ],
    ATTACK: [
        ("--method mcadam:0.8", "unknown anonymiser 'mcadam'"),
        ("--attackers psychic", "unknown attacker 'psychic'"),
        ("--template 10", "--template 10 is not a multiple of 6 s"),
        ("--attributes gender", "attributes need an embedding: add voice"),
        ("--features voice --attributes gender", "gender of these speakers is unknown"),
        ("--attackers semi-informed", "--background"),
        ("--background voices :training-minutes=1 :training-steps=9", "set one"),
    ],
    "audit": [
        ("people", "an audit needs an output file: add -o FILE.html"),
        ("people -o a.pdf", "let the name end in .html"),
        ("people -o taken.html --jobs 1", "use --replace"),
        ("people -o a.html --attributes mood --jobs 1", "mood of these speakers is unknown"),
    ],
    "experiment people": [
        ("-o new --features voice", "no frames of voice: use f0"),
        ("-o new --trained voice=names.txt", "--trained voice"),
        ("-o people/out", "use one outside the corpus"),
        ("-o other", "has other contents"),
    ],
}  # fmt: skip
"""Exit status 2, by what all lines of a group begin with."""

TROUBLE = {
    "replay": [
        ("no.wav", "cannot open no.wav (No such file or directory): check the name"),
        ("empty", "empty is a folder"),
        ("talks --features f0", "is a folder"),
        ("empty.wav", "empty.wav is empty"),
        ("letter.wav", "letter.wav is not a readable recording"),
        ("pipe.wav", "pipe.wav is not a plain file"),
        ("talk.wav --jsonl no/run.jsonl", "cannot write no/run.jsonl (No such file"),
        ("talk.wav --jsonl link.jsonl --replace", "which is a link: use the file itself"),
        ("talk.wav --jsonl dangling.jsonl", "which is a link: use the file itself"),
        ("talk.npz -p no.npz", "does not exist"),
        ("talk.npz -p newer.npz", "has schema 99, but this version reads at most 4"),
        ("talk.npz -p half.npz", "is damaged"),
        ("talk.npz -p talk.npz", "is damaged or not a population file"),
        ("talk.npz -p us.npz --rank-model us.npz", "Use a rank model file"),
        ("talk.npz -p enrolled.npz", "no rank model for f0"),
        ("talk.npz -p us.npz -w 000003 --ledger no/me.db", "cannot be opened"),
        ("talk.npz -p us.npz -w 000003 --ledger foreign.db", "is not a ledger"),
        ("people/000003/s0.npz -p us.npz", "were enrolled as 000003"),
        ("meeting.wav --turns bad.rttm", "bad.rttm line 1: 'x' is not a number"),
        ("talk.wav -p worded.npz --transcript letter.txt", "letter.txt is not a transcript"),
        (
            "talk.wav -p worded.npz --transcript two.vtt",
            "choose one speaker (--speaker-in-transcri",
        ),
        ("talk.wav -p worded.npz --transcript talk.vtt --speaker-in-transcript ann", "it names no"),
    ],
    "enrol": [
        ("no -o new.npz", "no does not exist; check the name"),
        ("flat -o new.npz", "has recordings without a speaker"),
        ("list.csv -o new.npz", "list.csv line 2: no.wav is missing"),
        ("columns.csv -o new.npz", "needs a first line with the columns path and speaker"),
        ("people --base half.npz -o new.npz", "is damaged"),
        ("talk.wav --speaker me -o new.npz --features f0 --channel 7", "channel"),
    ],
    "people": [("none.npz --forget ann", "none.npz")],
    "calibrate": [("few", "too few speakers (9) to fit a rank model, which needs at least 10")],
    "ledger": [("show none.db", "none.db: no such ledger")],
    "show": [
        ("no.jsonl", "cannot open no.jsonl"),
        ("talk.npz --csv", "is not a record"),
        ("empty.jsonl -o a.png", "empty.jsonl"),
        ("newer.jsonl -o a.png", "newer"),
        ("run.jsonl -o no/a.png", "make it first"),
    ],
    "serve --web 0": [
        ("--data dangling.jsonl", "is a link to a missing folder: create the folder"),
        ("--data letter.txt", "is not a folder"),
        ("--data shared", "holds more than templates"),
    ],
    "protect": [
        ("nan/nan.wav -o new.wav --method none", "NaN or infinite"),
        ("talk.wav -o letter.txt/a.wav --method none", "cannot write a.wav"),
        ("talk.wav -o new.wav --anonymiser-command false", "false failed with exit status 1"),
    ],
    "evaluate": [
        ("no.npy --labels labels.txt", "no.npy"),
        ("strong.npy --labels labels.txt --validation no/v.html", "there is no folder"),
    ],
    "score people": [
        ("-o a.npz --lengths 600", "no speaker has speech for tests of 600 s"),
        ("-o a.npz -p us.npz", "enrolled as 000000"),
    ],
    "": [
        ("score alone -o new.npz", "at least two"),
        ("attack voices -o letter.txt/out", "letter.txt is not a folder"),
        ("audit nothing -o a.html", "nothing does not exist"),
    ],
    "experiment people -o new": [(":tables-at=[99,99]", "shorter tables-at")],
    "audit": [
        ("alone -o a.html --jobs 1", "1 speaker with speech, but an audit needs at least 5"),
        ("people -o a.html --template 500 --jobs 1", "fewer than 5 speakers have 500 s"),
    ],
    ATTACK: [
        ("--seconds 500", "fewer than two readers have"),
        ("--anonymiser-command nosuchprogram", "nosuchprogram cannot be started"),
    ],
}
"""Exit status 1: nothing is wrong with the words."""


@pytest.fixture(scope="session")
def world(
    talk: Path, people: Path, population: Path, known: Path, crowds: Path, worded: Path,
    wav: Path, scores: Path, corpora: Callable[..., Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:  # fmt: skip
    """A folder of all sorts of things, none of which may change."""
    root = tmp_path_factory.mktemp("world")
    given = {"people": people, "voices": corpora(), "us.npz": population, "known.npz": known,
             "talk.npz": talk, "talk.wav": wav, "worded.npz": worded,
             "crowds.npz": crowds / "talk.npz", "told.npz": crowds / "told.npz",
             "plain.npz": crowds / "plain.npz", "strong.npy": scores / "strong.npy",
             "labels.txt": scores / "labels.txt", "link.jsonl": talk, "dangling.jsonl": root / "no",
             "alone/000003": people / "000003"}  # fmt: skip
    for folder in ("alone", "empty", "flat", "other", "talks", "twins/ann", "nan", "shared"):
        (root / folder).mkdir(parents=True)
    for name, target in given.items():
        (root / name).symlink_to(target)
    with np.load(population) as file:
        arrays = dict(file)
    header = {**json.loads(bytes(arrays["header"])), "schema": 99}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(root / "newer.npz", **arrays)
    us = Population.load(population)
    templates = us.features["f0"]
    for name, size in (("enrolled.npz", len(us)), ("me.npz", 1)):
        some = {"f0": FeatureTemplates(templates.spec, templates.slices[: us.offsets[size]])}
        who = [Speaker(f"p{i}") if i else Speaker("me") for i in range(size)]
        Population(who, us.offsets[: size + 1], some, RankModels([])).save(root / name)
    Ledger(root / "me.db").close()
    content = population.read_bytes()
    texts = {"half.npz": content[: len(content) // 2], "foreign.db": b"no database at all" * 99,
             "bad.rttm": b"SPEAKER meeting 1 0 x <NA> <NA> S0\n", "own.txt": b"well\nso\n",
             "other/index.html": b"mine", "shared/letter.txt": b"mine", "taken.csv": b"mine",
             "list.csv": b"path,speaker\nno.wav,ann\nnot.wav,bob\n",
             "columns.csv": b"file,who\nno.wav,ann\n", "names.txt": b"000000\n",
             "labels.html": (scores / "labels.txt").read_bytes()}  # fmt: skip
    for name, text in texts.items():
        (root / name).write_bytes(text)
    for name in ("empty.wav", "empty.jsonl"):
        (root / name).touch()
    for name in ("letter.wav", "letter.txt"):
        (root / name).write_bytes(b"this is a letter\n" * 9)
    (root / "shared").chmod(0o777)
    (root / "foreign.db").chmod(0o600)
    os.mkfifo(root / "pipe.wav")
    sound = synthetic(4.0)
    for name in ("flat/a.wav", "talks/1.wav", "meeting.wav", "twins/ann/one.wav",
                 "twins/ann/one.ogg"):  # fmt: skip
        soundfile.write(root / name, sound, RATE)
    soundfile.write(root / "nan/nan.wav", np.full(99, np.nan), RATE, subtype="FLOAT")
    (root / "meeting.rttm").write_text("SPEAKER meeting 1 0 2 <NA> <NA> S0 <NA> <NA>\n")
    captions(root / "talk.vtt")
    captions(root / "two.vtt", "ann", "bob")
    lines = [json.dumps(record) for record in records.run(5)]
    for name in ("run.jsonl", "run.csv"):
        (root / name).write_text("\n".join(lines) + "\n")
    start = json.loads(lines[0])
    (root / "newer.jsonl").write_text(json.dumps({**start, "schema": 99}) + "\n")
    np.savez(root / "phones.npz", phones=np.array([1, 2, 3]))
    bad = np.load(scores / "strong.npy")
    bad[3, 1] = np.nan
    np.save(root / "nan.npy", bad)
    write_corpus(root / "few", Simulation(9), 9, 1, 10.0)
    kits.kit(root / "kits").rename(root / "kit")
    return root


@pytest.fixture
def refused(
    run: Callable[..., Result], world: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Result]]:
    """A command among those things, where something else listens on the port ``{taken}``."""

    def looks() -> dict[Path, tuple[int, int, int]]:
        found = {path: path.lstat() for path in world.rglob("*")}
        return {path: (s.st_mode, s.st_size, s.st_mtime_ns) for path, s in found.items()}

    before = looks()
    monkeypatch.chdir(world)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        yield lambda line: run(*(given(word, port) for word in shlex.split(line)))
    assert looks() == before


def given(word: str, port: int) -> object:
    """A word of a command; ``:NAME=VALUE`` is a setting."""
    if not word.startswith(":"):
        return word.format(taken=port)
    name, _, value = word[1:].partition("=")
    return {name: json.loads(value) if value.startswith("[") or value == "true" else value}


def lines(groups: dict[str, list[tuple[str, str]]]) -> list[tuple[str, str]]:
    return [
        (f"{begin} {options}".strip(), words)
        for begin, some in groups.items()
        for options, words in some
    ]


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [(code, *each) for code, groups in ((2, USAGE), (1, TROUBLE)) for each in lines(groups)],
)
def test_what_makes_no_sense_or_cannot_be_done_is_refused_in_a_line(refused, code, line, words):
    result = refused(line)
    assert (result.code, result.out) == (code, "")
    assert words in result.complaint
