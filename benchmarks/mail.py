"""What people wrote themselves in answers to mailing lists, oldest first."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from email import message_from_string
from email.utils import mktime_tz, parseaddr, parsedate_tz
from pathlib import Path

FEWEST_WORDS, FEWEST_LETTERS = 1200, 8
_ANSWER = re.compile(r"(\[.*?\]\s*)?re(\[\d+\])?:", re.IGNORECASE)
_QUOTED = re.compile(r"\s*\w{0,3}[>|}:%#]")
_INTRODUCES = re.compile(r"(wrote|writes|said|says):?\s*$")
_ENDS = re.compile(r"(--|__+|-{5,}.*|={5,}|\*{5,})$")
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_LONGEST = 400
"""Words: what is longer is mostly somebody else's, passed on."""
_SHORTEST = 6


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
