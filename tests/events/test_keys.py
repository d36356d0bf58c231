"""A value against its JSON Schema: the verdict of `jsonschema`, and the key that is at fault."""

import jsonschema
import pytest

from monitor.events.keys import FIGURE, NUMBER, TEXT, misfit

OPEN = {"type": ["object", "null"], "properties": {"a.b": TEXT}, "additionalProperties": FIGURE}
SCHEMA = {
    "type": "object",
    "properties": {
        "open": OPEN,
        "nested": {"type": "array", "items": {"type": "object", "properties": {"open": OPEN}}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
        "pair": {"type": "array", "prefixItems": [TEXT, NUMBER], "minItems": 2, "maxItems": 2},
        "few": {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 2},
        "share": {"type": "number", "minimum": 0, "exclusiveMinimum": 0, "maximum": 1},
        "level": {"enum": ["warning", "info"]},
        "version": {"const": 2},
    },
}


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ({"open": {"a.b": "x", "f0": 1.0, "`$": None}, "further": [1]}, None),
        ({"open": None, "nested": [], "pair": ["x", 2], "few": ["x"], "share": 1}, None),
        ({"level": "info", "version": 2, "counts": {"f0": 3}}, None),
        ({"open": {"a.b": 1}}, "a.b"),
        ({"open": {"f0": "x"}}, "f0"),
        ({"open": []}, "open"),
        ({"nested": [{"open": {}}, {"open": {"`$[0]": "x"}}]}, "`$[0]"),
        ({"nested": [{}, 3]}, "nested"),
        ({"counts": {"f0": -1}}, "f0"),
        ({"counts": {"f0": 1 << 70, "f1": "x"}}, "f1"),
        ({"pair": ["x"]}, "pair"),
        ({"pair": ["x", "y"]}, "pair"),
        ({"few": []}, "few"),
        ({"few": ["x", None]}, "few"),
        ({"share": 0}, "share"),
        ({"share": True}, "share"),
        ({"level": "error"}, "level"),
        ({"version": 3, "level": "error"}, "version"),
        ([], "the whole"),
    ],
)
def test_the_first_key_that_does_not_fit(value, key):
    assert misfit(value, SCHEMA, "the whole") == key
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(value) is (key is None)
