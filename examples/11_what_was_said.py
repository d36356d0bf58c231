"""What was said, not how: does an anonymised recording still say the same?

python examples/11_what_was_said.py ORIGINAL ANONYMISED

The share of phones that differ, by the package's own recogniser of English: a measure of utility
beside the bits. Where the same words are spoken twice, two tellings differ as well: what matters is
how much more the anonymised one does.
"""

import sys

import soundfile

from monitor.features.phones import recognise_phones


def heard(path: str) -> list[str]:
    samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    return [each.phone for each in recognise_phones(samples.mean(axis=1), rate)]


def edits(one: list[str], other: list[str]) -> int:
    """Insertions, deletions and substitutions (Levenshtein)."""
    row = list(range(len(other) + 1))
    for i, phone in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, mine in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (phone != mine))
    return row[-1]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/11_what_was_said.py ORIGINAL ANONYMISED")
    original, anonymised = map(heard, sys.argv[1:])
    print(" ".join(original))
    print(" ".join(anonymised))
    print(f"{edits(original, anonymised) / max(len(original), 1):.0%} of the phones differ")
