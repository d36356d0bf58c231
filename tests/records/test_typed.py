"""The types of records have the keys of the schema, and those that are required are."""

from __future__ import annotations

from typing import Any, NotRequired, get_origin, get_type_hints

import pytest

from monitor.records import typed
from monitor.records.reading import READING
from monitor.records.schema import SCHEMA

READING_SCHEMA: dict[str, Any] = next(
    each for each in SCHEMA["oneOf"] if each["properties"]["type"] == {"const": READING.title}
)
PARTS = READING_SCHEMA["properties"]
PROTECTED = PARTS["protected"]
SHAPES = [
    (typed.ReadingRecord, READING_SCHEMA),
    (typed.GuidesRecord, PARTS["guides"]),
    (typed.FeatureRecord, PARTS["features"]["additionalProperties"]),
    (typed.AmongRecord, PARTS["among"]["items"]),
    (typed.BystanderRecord, PARTS["bystanders"]["items"]),
    (typed.OpenChangeRecord, PARTS["change"]),
    (typed.ConditionsRecord, PARTS["conditions"]),
    (typed.ProtectedRecord, PROTECTED),
    (typed.AttackerRecord, PROTECTED["properties"]["attackers"]["additionalProperties"]),
    (typed.DeclaredRecord, PARTS["declared"]),
]


@pytest.mark.parametrize(("kind", "schema"), SHAPES, ids=lambda each: getattr(each, "__name__", ""))
def test_a_type_is_what_the_schema_says(kind: Any, schema: dict[str, Any]):
    found = get_type_hints(kind, include_extras=True)
    assert list(found) == list(schema["properties"])
    required = {name for name, hint in found.items() if get_origin(hint) is not NotRequired}
    assert required == set(schema["required"])


def test_every_type_is_held_to_it():
    mine = {each for each in vars(typed).values() if getattr(each, "__total__", None) is not None}
    assert mine == {kind for kind, _ in SHAPES}
