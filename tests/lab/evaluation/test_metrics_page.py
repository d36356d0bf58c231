"""docs/metrics.md knows every family, in the words of its declaration."""

from __future__ import annotations

import re
from pathlib import Path

from monitor.lab.evaluation.family import Family, families
from monitor.lab.evaluation.report.report import short_name

PAGE = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"
HEADING = "## Families\n"


def section() -> str:
    """The section of the families, made from their declarations."""
    rows = "".join(map(_row, families()))
    return (
        f"{HEADING}\nMade from what each family declares (`monitor/lab/evaluation/FAMILY.py`) by\n"
        "`python tests/lab/evaluation/test_metrics_page.py`. Shown first are one or "
        "two figures of a family; `--figures FAMILY` shows all of it.\n\n"
        "| family | figures | stands on | shown first | where it misleads |\n"
        "| --- | --- | --- | --- | --- |\n"
        f"{rows}"
    )


STANDS_ON = {
    "matrix": "ranks",
    "pool": "all scores",
    "among": "`--among`",
    "epsilon": "`--epsilon`",
}


def _row(family: Family) -> str:
    needs = dict.fromkeys(
        STANDS_ON[need]
        for stands_on in (family.needs, *(entry.needs or () for entry in family.figures))
        for need in stands_on
    )
    main = " ".join(f"`{_name(family, key)}`" for key in family.main) or "-"
    return (
        f"| {family.title} (`{family.key}`) | {len(family.figures)} | "
        f"{', '.join(needs)} | {main} | {family.caveat} |\n"
    )


def _name(family: Family, key: str) -> str:
    entry = family.entry(key)
    return short_name(key) if entry is None else entry.name


def test_the_families_are_as_declared():
    assert section() in PAGE.read_text(encoding="utf-8")


def test_every_main_figure_and_every_need_is_declared():
    for family in families():
        assert family.needs, family.key
        for key in family.main:
            assert key in [entry.key for entry in family.figures], key


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    text = re.sub(rf"{HEADING}.*?(?=\n## |\Z)", section().replace("\\", r"\\"), text, flags=re.S)
    PAGE.write_text(text, encoding="utf-8")
