"""Little words to frames: texts of any program to tokens, lists that find them, frames by hand."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.features.style import Style, StyleTokens, StyleWords, read_style_words
from monitor.maths.scores import OF_COUNTS
from monitor.types import Words
from tests.contracts import talk


def tokens(*words: str) -> list[str]:
    said = StyleTokens()
    return [token for word in words for token in said.push(word)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["WHAT'S"], ["what's"]),
        ([" what\u2019s,"], ["what's"]),
        (["what\u00b4s"], ["what's"]),
        (["what`s"], ["what's"]),
        (["\uff37hat\u2019s!"], ["what's"]),  # full width
        (['"Hello,"'], ["hello"]),
        (["well-known"], ["well", "known"]),
        ([" well", "-known"], ["well", "known"]),  # as faster-whisper parts it
        (["well\u2010known"], ["well", "known"]),
        (["No\u2014I"], ["no", "i"]),
        (["no--i..."], ["no", "i"]),
        (["U.S."], ["u", "s"]),  # not the pronoun
        (["wa-"], ["-"]),
        (["I-I-w-,"], ["i", "i", "-"]),
        (["th[e]-"], ["-"]),
        (["-"], []),
        (["\u2014"], []),
        (["\u266a"], []),
        (["[noise]"], []),
        (["(laughs)", "so"], ["so"]),
        (["*coughs*", "<unk>", "{lg}"], []),
        (["<|0.00|>", "so<|2.00|>"], ["so"]),
        (["[background", "noise]", "so"], ["so"]),
        (["20", "$5", "1,995", "10:30", "3.5%", "21st", "'90s"], ["#"] * 7),
        (["20-year"], ["#", "year"]),
        (["mp3", "v1.5"], ["mp3", "v1", "#"]),
        (["so\u00adber", "a\u200bb"], ["sober", "ab"]),  # what nobody sees
        (["STRASSE", "stra\u00dfe"], ["strasse", "strasse"]),
        (["\u0939\u093f\u0928\u094d\u0926\u0940"], ["\u0939\u093f\u0928\u094d\u0926\u0940"]),
        (["%HESITATION", "%um"], ["uh", "um"]),
        (["((", "i", "think", "))", "so"], ["so"]),  # what the transcriber only guessed
        (["background noise"], ["background", "noise"]),
        ([""], []),
    ],
)
def test_what_is_written_differently_is_the_same(words, expected):
    assert tokens(*words) == expected


def bins(words: StyleWords, *texts: str) -> list[str | None]:
    tokens = StyleTokens()
    units = [u for text in texts for token in tokens.push(text) for u in words.units(token)]
    return [None if unit.place is None else words.bins[unit.place] for unit in units]


def test_the_page_tells_how_many_bins_there_are_and_its_list_is_one():
    page = (Path(__file__).resolve().parents[2] / "docs" / "features.md").read_text("utf-8")
    assert f"in {Style().spec.size} bins" in page
    (text,) = re.findall(r"^```\n(le\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    found = bins(StyleWords(text), "L\u2019homme", "pas", "3", "LE", "puis")
    assert found == ["l'", None, "negation", "number", "le", None]


@pytest.mark.parametrize("line", ["un", "zwei W\u00d6RTER", "a = b", "class x y z"])
def test_every_line_changes_the_mark_and_no_comment_does(line):
    assert StyleWords("und\n" + line).mark != StyleWords("und").mark
    assert StyleWords("UND  # and\n\n").mark == StyleWords("und").mark


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "has no words"),
        (b"# nothing", "has no words"),
        (b"und\nder\nsich und", "line 3: 'und' is listed twice"),
        (b"uh-huh", "line 1: 'uh-huh' is more than one word"),
        (b"21", "line 1: '21' is not a word"),
        (b"...", "line 1: '...' is not a word"),
        (b"a b = c", "line 1: a line is WORD"),
        (b"a =", "line 1: a line is WORD"),
        (b"a = b = c", "line 1: a line is WORD"),
        (None, "No such file"),
        ("\u00fcber".encode("latin-1"), "it is not UTF-8 text"),
        (b"a\n" * 600_000, "more than 1 MB"),
        ("\n".join(f"w{i:x}z" for i in range(20_001)).encode(), "more than 20000 words"),
    ],
)
def test_what_is_no_list_is_refused_in_a_line(tmp_path, data, said):
    path = tmp_path / "list.txt"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UsageError, match=said) as caught:
        read_style_words(path)
    assert "list.txt" in str(caught.value)
    assert str(tmp_path) not in str(caught.value)
    assert "\n" not in str(caught.value)


def timed(texts: list[str], every: int = 30) -> Words:
    begins = every * np.arange(len(texts))
    return Words(tuple(texts), begins, begins + every, begins + every)


def frames(texts: list[str], every: int = 30) -> list[str]:
    """What each frame counts, without rates."""
    style = Style()
    named = [style.bins[place] for place in style.process(timed(texts, every)).values]
    return [name for name in named if not name.endswith("a second)")]


SHORT, LONG, AGAIN = "(other, up to 4 letters)", "(other, from 9 letters)", "(other, said lately)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The moon, I s- I ran", ["the", SHORT, "i", "(broken off)", "i", SHORT]),
        ("what's WHAT\u2019S what 's", ["what", "'s"] * 3),
        ("Bob's Bob 's moon", [SHORT, "(repeated)", SHORT]),
        ("don't do n't can't cannot", ["do", "n't", "do", "n't", "can", "n't", "can", "not"]),
        ("who'd've", ["who", "'d", "'ve"]),
        ("uh, um... uhm ummm er", ["uh", "um", "um", "um", "uh"]),
        ("I I-I am", ["i", "(repeated)", "(repeated)", "am"]),
        ("no no moon moon", ["no", "(repeated)", SHORT, "(repeated)"]),
        ("moon the moon", [SHORT, "the", AGAIN]),
        ("w- w-", ["(broken off)"] * 2),
        ("21 twenty-one [noise] 1", ["number"]),
        ("in 1995 nineteen ninety five", ["in", "number"]),
        ("sooo ummmm", ["so", "um"]),
        ("'em 'tis 'hello'", ["them", "it", "is", "please"]),  # of the class please
        ("'s", []),
        ("unbelievably", [LONG]),
        ("Mr. Mister", ["(other, 5 to 6 letters)", "(repeated)"]),
        ("mhm mm-hmm mm hmm", ["mm"] * 6),
        ("[background noise] (laughs) \u266a -", []),
        ("\u043c\u0430\u043c\u0430", [SHORT]),
        ("", []),
    ],
)
def test_each_word_counts_in_its_bin(text, expected):
    assert frames(text.split()) == expected


SUBJECTS = (
    ["moon", "river", "engine", "governor", "tree", "mountain"],
    ["bank", "money", "dollar", "interest", "loan", "commerce"],
)


@given(st.lists(st.one_of(st.integers(0, 5), st.sampled_from(["i", "the", "isn't"])), max_size=60))
def test_the_subject_makes_no_difference(words):
    talks = [[own[w] if isinstance(w, int) else w for w in words] for own in SUBJECTS]
    one, two = (Style().process(timed(talk)).values for talk in talks)
    assert np.array_equal(one, two)


def recognised(habits: np.ndarray, seed: int) -> float:
    """How often the right one of some people scores highest, who talk by these habits."""
    rng, words = np.random.default_rng(seed), ["the", "i", "so", "like", "um", "but", "moon", "you"]

    def talks(of: np.ndarray, count: int) -> np.ndarray:
        track = Style().process(timed(rng.choice(words, count, p=of).tolist()))
        return np.bincount(track.values, minlength=Style().spec.size)

    likelihood = OF_COUNTS["log-likelihood"]
    templates = likelihood.prepare(np.stack([talks(each, 300) for each in habits]))
    tests = np.stack([talks(each, 150) for each in habits for _ in range(10)])
    right = np.repeat(np.arange(len(habits)), 10)
    return float((likelihood.score(templates, tests).argmax(axis=1) == right).mean())


def test_people_of_different_habits_are_recognised_and_those_of_one_are_not():
    habits = np.random.default_rng(1).dirichlet(np.full(8, 3.0), 12)
    assert recognised(habits, 2) > 0.8
    alike = recognised(np.tile(habits[0], (12, 1)), 2)
    assert alike < 0.25  # a twelfth, of 120 trials


@given(texts=st.lists(st.text(max_size=8), max_size=40), seed=st.integers(0, 99))
def test_any_texts_and_times_make_sound_frames(texts, seed):
    rng = np.random.default_rng(seed)
    begins = rng.integers(0, 500, len(texts))
    ends = begins + rng.integers(1, 90, len(texts))
    known = np.maximum.accumulate(ends + rng.integers(0, 300, len(texts)))
    style = Style()
    track = style.process(Words(tuple(texts), begins, ends, known))
    style.spec.kind.check("style", track.values, len(track.ticks), style.spec.size)
    assert np.all(track.spans[:, 0] < track.spans[:, 1])
    assert np.all(track.spans[:, 1] <= track.ticks)


def test_a_word_without_end_is_one_word():
    endless = "moon" + "'s" * 50_000
    assert frames([endless, endless]) == [SHORT, "(repeated)"]
    assert frames(["ma" * 50_000, "[" * 100_000 + "]" * 100_000]) == [LONG]


def test_usable_time_is_that_of_the_words_and_counts_once():
    words = talk(200)
    track = Style().process(words)
    rates = [Style().bins[value].endswith("a second)") for value in track.values]
    lengths = (track.spans[:, 1] - track.spans[:, 0])[~np.array(rates)]
    heard = np.zeros(words.ends[-1] + 100, bool)
    for begin, end in zip(words.begins, words.ends, strict=True):
        heard[begin:end] = True
    assert 0.8 * heard.sum() < lengths.sum() <= heard.sum() + 2


def test_the_rules_are_those_of_their_mark():
    """Where this fails, raise `_VERSION` in monitor/features/style.py, and then write it anew."""
    words = talk(2000)
    made = hashlib.sha256(Style().process(words).values.tobytes()).hexdigest()
    assert (Style().spec.network or "")[:12] == "85b258c7b252"
    assert made[:12] == "b83241b556ad"
