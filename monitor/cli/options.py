"""Option types that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import click

__all__ = ["Names", "Numbers", "Raw", "Seconds"]


if TYPE_CHECKING:
    _Type: TypeAlias = click.ParamType[Any]
else:
    _Type = click.ParamType  # generic only from click 8.4 on


class Names(_Type):
    """A comma-separated list of names."""

    name = "NAME[,NAME]"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        names = tuple(part.strip() for part in value.split(",") if part.strip())
        return names or self.fail("name at least one", param, ctx)


class Numbers(_Type):
    """A comma-separated list of positive numbers, returned in increasing order."""

    name = "S[,S]"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            numbers = sorted({float(part) for part in value.split(",")})
        except ValueError:
            self.fail(f"{value!r} is not a list of seconds such as 1,10,60", param, ctx)
        if numbers[0] <= 0:
            self.fail("seconds must be positive", param, ctx)
        return tuple(numbers)


class Seconds(_Type):
    """Seconds as 90, 90s, 1.5m, 2h or 1:30."""

    name = "SECONDS"
    _UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}  # noqa: RUF012

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        text = value.strip()
        try:
            if ":" in text:
                total = 0.0
                for part in text.split(":"):
                    total = total * 60 + float(part)
                return total
            return float(text.rstrip("smh") or "x") * self._UNITS.get(text[-1], 1.0)
        except (ValueError, IndexError):
            self.fail(f"{value!r} is not a length such as 90, 1.5m or 1:30", param, ctx)


class Raw(_Type):
    """Headerless PCM on standard input: RATE:CHANNELS:ENCODING."""

    name = "RATE:CHANNELS:ENCODING"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            rate, channels, encoding = value.split(":")
            return int(rate), int(channels), encoding
        except ValueError:
            self.fail(f"{value!r} is not like 16000:1:s16le", param, ctx)
