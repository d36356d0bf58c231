import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.corpus import find
from monitor.corpus.tables import read_speaker_attributes
from monitor.corpus.trials import find_enrolment_folder, parse_folder, read_trial_lists
from monitor.errors import CorpusError, SourceError, UnnamedSpeakerError
from monitor.sources.file import File


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def triples(corpus, root: Path) -> list[tuple[str, str, str]]:
    return [(r.speaker, r.session, r.path.relative_to(root).as_posix()) for r in corpus]


def manifest(root: Path, text: str, name: str = "manifest.csv") -> Path:
    (root / name).write_text(text, encoding="utf-8")
    return root / name


@pytest.mark.parametrize("header", ["path,speaker,session", "PATH, Speaker ,chapter"])
def test_manifest(tmp_path, header):
    make(tmp_path, "a/1.wav", "a/10.wav", "a/9.wav", "b.flac", "x, y.wav")
    rows = "a/10.wav,ann,s1\na/9.wav,ann,s1\na/1.wav,ann,s0\nb.flac,Zoë,s1\n"
    manifest(tmp_path, f"\ufeff{header}\n{rows}")
    assert sorted(triples(find(tmp_path), tmp_path)) == [
        ("Zoë", "s1", "b.flac"),
        ("ann", "s0", "a/1.wav"),
        ("ann", "s1", "a/10.wav"),
        ("ann", "s1", "a/9.wav"),
    ]
    path = manifest(tmp_path, "speaker\tpath\nann\tx, y.wav\nann\tb.flac\n", "my.tsv")
    assert triples(find(path), tmp_path) == [("ann", "b", "b.flac"), ("ann", "x, y", "x, y.wav")]


def test_manifest_problems_are_named_and_the_rest_goes_on(tmp_path):
    make(tmp_path, "a.wav", "b.wav", "c.wav")
    text = (
        "path,speaker\n"
        "a.wav,ann\n"
        "gone.wav,ann\n"
        "a.wav,ann\n"
        "a.wav,bob\n"
        ",ann\n"
        "b.wav,\n"
        'b.wav,"x\x07y"\n'
        "c.wav,ann,extra\n"
        "b.wav,bob\n"
    )
    corpus = find(manifest(tmp_path, text))
    assert triples(corpus, tmp_path) == [("ann", "a", "a.wav"), ("bob", "b", "b.wav")]
    said = "\n".join(corpus.problems)
    assert len(corpus.problems) == 7
    for words in (
        "line 3: gone.wav is missing",
        "line 4: a.wav is listed twice",
        "line 5: a.wav is listed for ann and for bob",
        "line 6: must be a path and a speaker",
        "line 7: has no speaker (empty)",
        "line 8: b.wav: the speaker's name 'x\\x07y' cannot be printed",
        "line 9: must be a path",
    ):
        assert words in said
    assert "\x07" not in said


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    """As some editors begin a text: the first utterance would be another's."""
    make(tmp_path, "a.wav", "b.wav")
    texts = {
        "wav.scp": "u1 a.wav\nu2 b.wav\n", "utt2spk": "u1 ann\nu2 bob\n",
        "spk2gender": "ann f\nbob m\n", "enrolls": "u1\n",
        "trials_f": "ann u2 nontarget\nbob u2 target\n",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
    corpus = find(tmp_path)
    assert triples(corpus, tmp_path) == [("ann", "u1", "a.wav"), ("bob", "u2", "b.wav")]
    assert corpus.problems == ()
    assert read_speaker_attributes(tmp_path) == {"gender": {"ann": "f", "bob": "m"}}
    lists = read_trial_lists(tmp_path)
    assert (lists.enrolment, lists.speakers) == (frozenset({"u1"}), ("ann", "bob"))
    (tmp_path / "trials_f").write_text("bob u2 target\nann u2 nontarget\nbob u2 nontarget\n")
    with pytest.raises(CorpusError, match="trials_f line 3: bob u2 is both target and nontarget"):
        read_trial_lists(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "columns path and speaker"),
        ("file,name\na.wav,ann\n", "columns path and speaker"),
        ("path,speaker,path\n", "each once"),
        ("path,speaker\n", "no recording that can be used"),
        ("path,speaker\ngone.wav,ann\n", "gone.wav is missing"),
        ('path,speaker\n"a.wav,ann\n', "not a table"),
        ("path,speaker\n\xff\xfe,a\n", "UTF-8"),
        ("# my corpus\npath,speaker\na.wav,ann\n", "comment"),
        ("\x1f\x8b\x08\x00", "gzip.*unpack it"),
        ("<html></html>", "web page"),
        ("version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ],
)
def test_useless_manifests(tmp_path, text, words):
    (tmp_path / "manifest.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(CorpusError, match=words) as caught:
        find(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("empty", ["nan", "NaN", "None", "null", "<NA>"])
def test_an_empty_cell_of_pandas_is_no_speaker(tmp_path, empty):
    make(tmp_path, "a.wav", "b.wav")
    corpus = find(manifest(tmp_path, f"path,speaker\na.wav,ann\nb.wav,{empty}\n"))
    assert corpus.speakers == ("ann",)
    assert corpus.problems == (f"manifest.csv line 3: has no speaker ({empty})",)
    (tmp_path / "manifest.csv").unlink()
    (tmp_path / "wav.scp").write_text("u1 a.wav\nu2 b.wav\n")
    (tmp_path / "utt2spk").write_text(f"u1 ann\nu2 {empty}\n")
    corpus = find(tmp_path)
    assert corpus.speakers == ("ann",)
    assert corpus.problems == (f"wav.scp u2: has no speaker ({empty})",)
    make(tmp_path / "voices", f"{empty}/c.wav", "bob/d.wav")  # a folder may have any name
    assert set(find(tmp_path / "voices").speakers) == {"bob", empty}


@pytest.mark.parametrize(("one", "other"), [("1272", "1272.0"), ("0019", "19"), ("Ann", "ann")])
def test_another_spelling_is_not_another_person(tmp_path, one, other):
    make(tmp_path, "a.wav", "b.wav", "c.wav")
    text = f"path,speaker\na.wav,{one}\nb.wav,{other}\nc.wav,1988.0\n"
    problem = f"manifest.csv: speaker {other} is also written {one}"
    with pytest.raises(CorpusError, match=re.escape(problem)):
        find(manifest(tmp_path, text))


def test_a_comma_may_end_each_line(tmp_path):
    make(tmp_path, "a.wav", "b.wav")
    for text in (
        "path,speaker,\na.wav,ann,\nb.wav,bob,\n",
        "path,speaker\na.wav,ann,\nb.wav,bob,\n",
    ):
        corpus = find(manifest(tmp_path, text))
        assert (corpus.speakers, corpus.problems) == (("ann", "bob"), ())


@pytest.mark.slow
@settings(max_examples=60)
@given(st.text(max_size=200))
def test_any_manifest_is_read_or_refused(tmp_path_factory, text):
    root = tmp_path_factory.mktemp("any")
    make(root, "a.wav")
    path = root / "manifest.csv"
    path.write_text("path,speaker\na.wav,ann\n" + text, encoding="utf-8", errors="ignore")
    try:
        corpus = find(path)
    except CorpusError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert all(problem.isprintable() for problem in corpus.problems)
        assert all(recording.speaker.isprintable() for recording in corpus)


@pytest.mark.parametrize(
    ("command", "read"),
    [
        ("flac -c -d -s {} |", True),
        ("/usr/local/bin/flac -cds {}|", True),
        ("flac --stdout --decode --silent {} |", True),
        ("flac -s -d -c '{}' |", True),
        ('"flac" -c -d -s "{}" |', True),
        ("flac -d -s {} |", False),  # writes a file
        ("flac -c -d -s --skip=8000 {} |", False),  # another part of it
        ("flac -c -d -s {} {} |", False),
        ("flac -c -d -s {} | sox -t wav - -r 8000 -t wav - |", False),
        ("flac -c -d -s {} > owned |", False),
        ("sox {} -t wav - |", False),
        ("notflac -c -d -s {} |", False),
        ("flac -c -d -s '{} |", False),
    ],
)
def test_what_flac_decodes_is_read_without_it(tmp_path, command, read):
    """No command is run: of the one that only decodes, the file is taken."""
    path = tmp_path / "of ann" / "a.flac" if "'{}'" in command else tmp_path / "a.flac"
    make(path.parent, "a.flac")
    (tmp_path / "wav.scp").write_text(f"ann-1 {command.replace('{}', str(path))}\n")
    (tmp_path / "utt2spk").write_text("ann-1 ann\n")
    if read:
        (recording,) = find(tmp_path)
        assert (recording.speaker, recording.path) == ("ann", path)
    else:
        with pytest.raises(CorpusError, match="which is never run") as caught:
            find(tmp_path)
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "owned").exists()


def test_kaldi(tmp_path, monkeypatch):
    root = tmp_path / "data"
    make(root, "a.wav", "b 1.wav")
    make(tmp_path, "egs/c.wav")
    monkeypatch.chdir(tmp_path)
    (root / "wav.scp").write_text(
        "ann-1 a.wav\nann-2 b 1.wav\nbob-1 egs/c.wav\n"
        "bob-2 touch owned |\nbob-3 gone.wav\nbob-4 -\nann-1 a.wav\nlonely a.wav\nbad\n"
    )
    (root / "utt2spk").write_text(
        "ann-1 ann\nann-2 ann\nbob-1 bob\nbob-2 bob\nbob-3 bob\nbob-4 bob\nbob-9 bob\n"
    )
    corpus = find(root)
    assert [(r.speaker, r.session, r.path.name) for r in corpus] == [
        ("ann", "ann-1", "a.wav"),
        ("ann", "ann-2", "b 1.wav"),
        ("bob", "bob-1", "c.wav"),
    ]
    said = "\n".join(corpus.problems)
    assert len(corpus.problems) == 7
    for words in (
        "bob-2: is a command, which is never run",
        "bob-3: gone.wav is missing",
        "bob-4: is standard input",
        "ann-1 is listed twice",
        "lonely: has no speaker",
        "line 9: must be a name",
        "bob-9 has no line in wav.scp",
    ):
        assert words in said
    assert not (tmp_path / "owned").exists()
    (root / "segments").write_text("x y 0 1\n")
    with pytest.raises(CorpusError, match="segments"):
        find(root)
    (root / "segments").unlink()
    (root / "utt2spk").unlink()
    with pytest.raises(CorpusError, match="utt2spk"):
        find(root)


@pytest.mark.parametrize("above", ["", "LibriSpeech/dev-clean/"])
def test_librispeech(tmp_path, above):
    names = ["84/121/84-121-0010.flac", "84/121/84-121-0009.flac", "84/99/84-99-0000.flac"]
    make(tmp_path, *(above + name for name in (*names, "1272/5/1272-5-0000.flac")))
    make(tmp_path, above + "84/121/84-121.trans.txt", above + "84/121/notes.wav")
    corpus = find(tmp_path)
    assert [(s, c, Path(p).name) for s, c, p in triples(corpus, tmp_path)] == [
        ("84", "99", "84-99-0000.flac"),
        ("84", "121", "84-121-0009.flac"),
        ("84", "121", "84-121-0010.flac"),
        ("1272", "5", "1272-5-0000.flac"),
    ]
    assert corpus.problems == (f"{above}84/121/notes.wav is not named as in LibriSpeech",)


def test_a_folder_a_speaker(tmp_path):
    make(
        tmp_path,
        "s10/a.wav",
        "s9/monday/1.WAV",
        "s9/monday/2.npz",
        "s9/b.jsonl",
        "s9/.hidden.wav",
        ".git/x.wav",
        "s9/readme.txt",
        "stray.mp3",
    )
    corpus = find(tmp_path)
    assert triples(corpus, tmp_path) == [
        ("s9", "b", "s9/b.jsonl"),
        ("s9", "monday", "s9/monday/1.WAV"),
        ("s9", "monday", "s9/monday/2.npz"),
        ("s10", "a", "s10/a.wav"),
    ]
    assert corpus.problems == ("stray.mp3 is not in a speaker's folder",)


def sessions(corpus) -> dict[str, list[str]]:
    assert corpus.speakers == ("me",)
    return {name: [path.name for path in of] for name, of in corpus.sessions("me").items()}


def test_one_person(tmp_path, monkeypatch):
    make(tmp_path, "me/a.wav", "me/b.FLAC", "me/notes.txt", "me/monday/1.wav", "me/monday/x/2.mp3")
    everything = {"a": ["a.wav"], "b": ["b.FLAC"], "monday": ["1.wav"], "monday/x": ["2.mp3"]}
    assert sessions(find(tmp_path / "me", speaker="me")) == everything
    assert sessions(find(tmp_path / "me" / "a.wav", speaker="me")) == {"a": ["a.wav"]}
    files = [path for path in sorted((tmp_path / "me").rglob("*.*")) if path.suffix != ".txt"]
    assert sessions(find(*files, speaker="me")) == everything
    make(tmp_path, "84/121/84-121-0000.flac", "84/121/84-121-0001.flac", "84/9/84-9-0000.flac")
    assert sorted(sessions(find(tmp_path / "84", speaker="me"))) == ["121", "9"]  # as LibriSpeech
    make(tmp_path, "mine/monday/take.wav", "mine/tuesday/take.wav", "old/take.wav")
    found = find(tmp_path / "mine/monday", tmp_path / "mine/tuesday", speaker="me")
    assert sessions(found) == {"monday": ["take.wav"], "tuesday": ["take.wav"]}
    monkeypatch.chdir(tmp_path / "mine")
    assert len(sessions(find("monday/take.wav", "tuesday", "../old/take.wav", speaker="me"))) == 3
    assert sessions(find(".", speaker="me")) == sessions(found)
    make(tmp_path, "mine/manifest.csv")
    with pytest.raises(CorpusError, match=r"has manifest\.csv, which names the speakers"):
        find(".", speaker="me")


def test_names_of_speakers_and_link_loops(tmp_path):
    decomposed = unicodedata.normalize("NFD", "Zoë")
    make(tmp_path, f"{decomposed}/a.wav", "李/a.wav", "bad\x1bname/a.wav")
    (tmp_path / "李" / "again").symlink_to(tmp_path)
    (tmp_path / "李2").symlink_to(tmp_path / "李")
    (tmp_path / "李" / "gone.wav").symlink_to(tmp_path / "nowhere.wav")
    corpus = find(tmp_path)
    assert triples(corpus, tmp_path) == [
        ("Zoë", "a", f"{decomposed}/a.wav"),
        ("李", "a", "李/a.wav"),
    ]
    said = "\n".join(corpus.problems)
    assert "\x1b" not in said
    assert "cannot be printed" in said
    assert "李/gone.wav is missing" in said


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "no recording in .* it should hold one folder per speaker"),
        (["a.txt", "b/c.pdf"], "no recording in"),
        (["a/x.m4a"], r"a/x.m4a is not supported: convert it with ffmpeg -i .*a/x.wav"),
        (["a.wav", "b.wav"], "without a speaker"),
    ],
)
def test_folders_that_are_no_corpus(tmp_path, names, words):
    make(tmp_path, *names)
    with pytest.raises(CorpusError, match=words) as caught:
        find(tmp_path)
    assert str(tmp_path) not in str(caught.value)


def test_places_that_are_no_folder(tmp_path):
    make(tmp_path, "a.wav", "c/ann/b.wav")
    for names, error, words in (
        (["a.wav"], UnnamedSpeakerError, r"a\.wav is one file"),
        (["a.wav", "c"], UnnamedSpeakerError, "2 paths without a speaker"),
        (["nowhere"], CorpusError, "does not exist"),
        (["a\0b"], CorpusError, "cannot|null|does"),
    ):
        with pytest.raises(error, match=words):
            find(*(tmp_path / name for name in names))


def test_what_a_table_says_of_speakers(tmp_path):
    assert read_speaker_attributes(tmp_path) == {}
    (tmp_path / "manifest.tsv").write_text(
        "path\tspeaker\tsession\tsex\tage\tmood\ttext\n"
        f"1.wav\tann\t1\tF\t30\tgay\t{'word ' * 9}\n"
        "2.wav\tann\t2\tF\t\tsad\t\n"
        "3.wav\tbob\t1\tM\t\tsad\t\n"
    )
    found = {"sex": {"ann": "F", "bob": "M"}, "age": {"ann": "30"}}
    assert read_speaker_attributes(tmp_path) == found
    # of whom it says two things nothing is said
    lines = [f"{i}.wav,s{i:02},{'fm'[i % 2]}" for i in range(20)]
    lines = ["path,speaker,gender", *lines, "x.wav,s03,other", ""]
    (tmp_path / "manifest.csv").write_text("\n".join(lines))
    (said,) = read_speaker_attributes(tmp_path).values()
    assert "s03" not in said
    assert len(said) == 19


@pytest.mark.parametrize("name", ["x.ark", "x.scp", "X.SCP", "wav.scp", "."])
def test_archives_of_vectors_are_refused_with_what_reads_them(tmp_path, name):
    make(tmp_path, name if name != "." else "x.ark")
    (tmp_path / "utt2spk").write_text("u ann\n")
    advice = "their folder" if name == "wav.scp" else "--trials FILE --enrolment FILE"
    with pytest.raises(CorpusError, match=advice):
        find(tmp_path / name)
    if name != ".":
        with pytest.raises(SourceError, match=advice):
            File(tmp_path / name)


@pytest.mark.parametrize("suffix", ["", "_b2", "_mcadams-0.8", "_b2.1"])
@pytest.mark.parametrize("part", ["", "_f", "_m_common", "_mixed"])
def test_a_suffix_of_voiceprivacy_may_be_any_text(tmp_path, part, suffix):
    make(tmp_path, f"libri_dev_enrolls{suffix}/wav.scp", f"libri_dev_trials{part}{suffix}/wav.scp")
    enrolment = tmp_path / f"libri_dev_enrolls{suffix}"
    (enrolment / "enrolls").write_text("u1\n")
    trials = tmp_path / f"libri_dev_trials{part}{suffix}"
    assert parse_folder(trials.name) == ("libri_dev", part[1:], suffix, False)
    assert parse_folder(enrolment.name) == ("libri_dev", "", suffix, True)
    assert find_enrolment_folder(trials) == enrolment
    assert find_enrolment_folder(enrolment) is None


def test_anonymised_speech_of_voiceprivacy_has_the_lists_of_the_original(tmp_path):
    """Only its audio, wherever below, is needed; utterances without audio are named."""
    original, anonymised = (tmp_path / f"libri_dev_trials_f{end}" for end in ("", "_b2"))
    make(original, "wav.scp", "wav/u1.wav", "wav/u2.wav")
    (original / "wav.scp").write_text("u1 wav/u1.wav\nu2 wav/u2.wav\n")
    (original / "utt2spk").write_text("u1 ann\nu2 bob\n")
    (original / "trials").write_text("ann u1 target\nbob u1 nontarget\n")
    make(anonymised, "wav/u1.wav")
    corpus = find(anonymised)
    assert [(r.speaker, r.session) for r in corpus] == [("ann", "u1")]
    assert corpus.recordings[0].path == anonymised / "wav" / "u1.wav"
    assert any("u2" in problem for problem in corpus.problems)
    lists = read_trial_lists(anonymised)
    assert lists is not None
    assert lists.pairs == 2
    assert read_trial_lists(tmp_path / "libri_dev_trials_m_b2") is None
