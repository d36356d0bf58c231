"""Whose attributes are told, and by what: readers judged are never learnt from."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from monitor.corpus import find
from monitor.errors import UsageError
from monitor.lab.attacks.attributes import prepare_attributes
from monitor.lab.attacks.speech import Amounts

EXCERPTS = Amounts(4.0, 3)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["speaker", "height", "age"])
        rows.writerows([f"r{i}", "low" if i % 6 < 3 else "high", 10 + 2 * i] for i in range(12))
    return path


@pytest.mark.slow
def test_readers_apart_are_learnt_from(corpora, table):
    root, other = corpora(), corpora(first=6)
    apart = prepare_attributes(
        find(root), root, [(find(other), other)], ["height", "age<16"], EXCERPTS, table
    )
    assert apart.learnt is not None
    assert not {r.name for r in apart.learnt.everybody} & {r.name for r in apart.judged.everybody}


def test_who_is_judged_is_never_learnt_from(corpora, table):
    root = corpora()
    same = prepare_attributes(find(root), root, [(find(root), root)], ["height"], EXCERPTS, table)
    assert same.learnt is None


def test_what_is_not_known_is_refused(corpora):
    root = corpora()
    with pytest.raises(UsageError, match="no table says the gender"):
        prepare_attributes(find(root), root, [], ["gender"], EXCERPTS)
