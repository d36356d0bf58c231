"""Little words to frames: by hand, and the same frames whoever wrote the words down."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.features.registry import defaults, make
from monitor.features.style import Style, StyleWords, english
from monitor.maths.scores import OF_COUNTS
from monitor.types import IntArray, Track, Words
from tests.contracts import pieces, talk


def said(texts: list[str], every: int = 30) -> Words:
    begins = every * np.arange(len(texts))
    return Words(tuple(texts), begins, begins + every, begins + every)


def frames(texts: list[str], every: int = 30) -> list[str]:
    """What each frame counts, without rates."""
    style = Style()
    named = [style.bins[place] for place in style.process(said(texts, every)).values]
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


def test_a_word_is_said_lately_among_fifty_others():
    others = [f"moon{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(50)]
    assert frames(["tree", "the", *others[:49], "tree"])[-1] == AGAIN
    assert frames(["tree", "the", *others, "tree"])[-1] == SHORT


@pytest.mark.parametrize(
    ("every", "rate"),
    [(30, "3.25 to 3.5"), (40, "2.5 to 2.75"), (50, "below 2.25"), (1000, "below 2.25")],
)
def test_the_rate_is_that_of_eight_words(every, rate):
    style = Style()
    track = style.process(said(["moon", "tree"] * 13, every))
    at = [i for i, v in enumerate(track.values) if style.bins[v].endswith("a second)")]
    assert [style.bins[track.values[i]] for i in at] == [f"({rate} words a second)"] * 3
    # of words 0 to 8, with the ninth of which it is complete; and it takes no time of its own
    begins = every * np.array([0, 8, 16])
    assert track.spans is not None
    assert track.spans[at].tolist() == np.column_stack((begins, begins + 1)).tolist()
    assert track.ticks[at].tolist() == (begins + 9 * every).tolist()


def test_a_turn_of_somebody_else_counts_as_a_second():
    texts = ["moon"] * 9
    near, far = (np.array([*range(0, 240, 30), 210 + gap]) for gap in (100, 99_000))
    made = [Style().process(Words(tuple(texts), b, b + 10, b + 10)) for b in (near, far)]
    assert np.array_equal(made[0].values, made[1].values)


def test_the_parts_of_a_word_share_its_time():
    track = Style().process(Words(("don't",), np.array([10]), np.array([30]), np.array([90])))
    assert track.spans is not None
    assert track.spans.tolist() == [[10, 20], [20, 30]]
    assert track.ticks.tolist() == [90, 90]


def timed(texts: list[str], begins: IntArray) -> Words:
    return Words(tuple(texts), begins, begins + 20, begins + 25)


def written(token: str, how: int) -> list[str]:
    """A token as one program or another writes it."""
    capital = token[:1].upper() + token[1:]
    ways = {
        0: [token],
        1: [token.upper()],
        2: [" " + capital + ","],
        3: ["[NOISE]", token + "."],
        4: [token.replace("'", "\u2019")],
        5: ["\u201c" + token + "\u201d", "\u2014"],
        6: [token.replace("n't", " n't") if "n't" in token else token.replace("'", " '")],
        7: token.replace("-", " -").split(),
    }
    return ways[how]


SAID = st.lists(
    st.sampled_from(
        ["i", "the", "don't", "what's", "well-known", "moon", "um", "you've", "tree's", "uh-huh"]
    ),
    max_size=60,
)


@given(words=SAID, ways=st.lists(st.integers(0, 7), min_size=60, max_size=60))
def test_the_same_words_of_any_format_are_the_same_frames(words, ways):
    texts, begins = [], []
    for i, (word, how) in enumerate(zip(words, ways, strict=False)):
        for text in written(word, how):
            texts.append(text)
            begins.append(30 * i)
    plain = timed(words, 30 * np.arange(len(words)))
    other = timed(texts, np.array(begins, np.int64))
    one, two = Style().process(plain), Style().process(other)
    assert one.values.tolist() == two.values.tolist()
    assert one.ticks.tolist() == two.ticks.tolist()


SUBJECTS = (
    ["moon", "river", "engine", "governor", "tree", "mountain"],
    ["bank", "money", "dollar", "interest", "loan", "commerce"],
)


@given(st.lists(st.one_of(st.integers(0, 5), st.sampled_from(["i", "the", "isn't"])), max_size=60))
def test_the_subject_makes_no_difference(words):
    talks = [[own[w] if isinstance(w, int) else w for w in words] for own in SUBJECTS]
    one, two = (Style().process(said(talk)).values for talk in talks)
    assert np.array_equal(one, two)


def recognised(habits: np.ndarray, seed: int) -> float:
    """How often the right one of some people scores highest, who talk by these habits."""
    rng, words = np.random.default_rng(seed), ["the", "i", "so", "like", "um", "but", "moon", "you"]

    def talks(of: np.ndarray, count: int) -> np.ndarray:
        track = Style().process(said(rng.choice(words, count, p=of).tolist()))
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


@given(
    texts=st.lists(st.text(max_size=8), max_size=40),
    seed=st.integers(0, 99),
    cut=st.integers(0, 40),
)
def test_any_texts_and_times_make_sound_frames(texts, seed, cut):
    rng = np.random.default_rng(seed)
    begins = rng.integers(0, 500, len(texts))
    ends = begins + rng.integers(1, 90, len(texts))
    known = np.maximum.accumulate(ends + rng.integers(0, 300, len(texts)))
    words = Words(tuple(texts), begins, ends, known)
    style = Style()
    track = style.process(words)
    style.spec.kind.check("style", track.values, len(track.ticks), style.spec.size)
    assert track.spans is not None
    assert np.all(track.spans[:, 0] < track.spans[:, 1])
    assert np.all(track.spans[:, 1] <= track.ticks)
    style.reset()
    assert_same(parts(style, words, cut), track)


def parts(style: Style, words: Words, cut: int) -> Track:
    tracks = [style.process(each) for each in pieces(words, [cut])]
    return Track(
        np.concatenate([each.ticks for each in tracks]),
        np.concatenate([each.values for each in tracks]),
        np.concatenate([each.spans for each in tracks if each.spans is not None]),
    )


def assert_same(one: Track, two: Track) -> None:
    assert np.array_equal(one.ticks, two.ticks)
    assert np.array_equal(one.values, two.values)
    assert one.spans is not None
    assert two.spans is not None
    assert np.array_equal(one.spans, two.spans)


def test_a_word_without_end_is_one_word():
    endless = "moon" + "'s" * 50_000
    assert frames([endless, endless]) == [SHORT, "(repeated)"]
    assert frames(["ma" * 50_000, "[" * 100_000 + "]" * 100_000]) == [LONG]


def test_usable_time_is_that_of_the_words_and_counts_once():
    words = talk(200)
    track = Style().process(words)
    assert track.spans is not None
    rates = [Style().bins[value].endswith("a second)") for value in track.values]
    lengths = (track.spans[:, 1] - track.spans[:, 0])[~np.array(rates)]
    heard = np.zeros(words.ends[-1] + 100, bool)
    for begin, end in zip(words.begins, words.ends, strict=True):
        heard[begin:end] = True
    assert 0.8 * heard.sum() < lengths.sum() <= heard.sum() + 2


def test_frames_of_two_lists_are_marked_apart():
    own = Style(StyleWords("und\nder"))
    assert own.bins[-2:] == ("und", "der")
    assert own.spec.name == "style"
    assert own.spec.network != Style().spec.network == Style(english()).spec.network
    assert own.spec.size < Style().spec.size


def test_the_rules_are_those_of_their_mark():
    """Where this fails, raise `_VERSION` in monitor/features/style.py, and then write it anew."""
    words = talk(2000)
    made = hashlib.sha256(Style().process(words).values.tobytes()).hexdigest()
    assert (Style().spec.network or "")[:12] == "85b258c7b252"
    assert made[:12] == "b83241b556ad"


def test_it_is_heard_when_asked_for():
    assert "style" not in defaults()
    assert make(["style"])[0].spec.takes == "words"
