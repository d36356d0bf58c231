"""Arrays, tensors, series and tables of any library as NumPy arrays; unclear ones are refused."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from monitor.errors import MonitorError, UsageError
from monitor.safe_text import spelled

_Array: TypeAlias = NDArray[Any]
_MASKED = "contain masked values: leave these out"
_MISSING = ("NoneType", "NAType", "NaTType")  # types of a missing value, in Python and in pandas
_OTHERS = {
    "c": "complex numbers", "M": "dates", "m": "time spans", "U": "text", "S": "text", "T": "text",
}  # fmt: skip
_PLAIN = "fiub"  # kinds that need no conversion


def real_numbers(
    values: object, what: str, dtype: Any = None, *, error: type[MonitorError] = UsageError
) -> _Array:
    """Return real numbers as a NumPy array, without a copy if possible.

    It reads arrays of any library, tensors of any precision and device, series and data frames,
    lists, and buffers. A missing value becomes NaN.

    ``what`` is their name in messages, a plural. UsageError, or ``error``, for values that are
    masked, sparse, records, or something other than real numbers. ``dtype`` None keeps the type.

    Example:
        >>> real_numbers([1, 2.5], "scores"), real_numbers(memoryview(b"ab"), "samples")
        (array([1. , 2.5]), array([97, 98], dtype=uint8))
    """
    if dtype is None and type(values) is np.ndarray and values.dtype.kind in _PLAIN:
        return values
    try:
        return np.asanyarray(_numbers(_as_array(values)), dtype)
    except ValueError as reason:
        raise error(f"{what} {reason}") from None


def refuse_masked(what: str, *arrays: object, error: type[MonitorError] = UsageError) -> None:
    """Refuse arrays with masked values, which other functions would use as data."""
    if any(map(np.ma.is_masked, arrays)):
        raise error(f"{what} {_MASKED}")


def names_or_numbers(values: object, what: str) -> _Array:
    """Return whole numbers or names, one for each item, as an array of integers or of text.

    It reads arrays, series, categories and lists of either. Bytes are UTF-8, and names are spelled
    as `monitor.safe_text.spelled` spells them. UsageError for a label that is missing or masked, or
    something other than a name or a whole number.

    Example:
        >>> names_or_numbers([b"ann", b"bob"], "labels").tolist()
        ['ann', 'bob']
    """
    try:
        array = _as_array(values)
    except ValueError as reason:
        raise UsageError(f"{what} {reason}") from None
    if array.ndim != 1 or array.dtype.names:
        raise UsageError(
            f"{what} are {array.dtype} of shape {array.shape}: give a name or a column number "
            "for each trial"
        )
    if array.dtype.kind in "iu":
        return array
    items = array.tolist()
    names = list(map(name_of, items))
    if None in names:
        index = names.index(None)
        raise UsageError(
            f"{what}: number {index + 1} is {items[index]!r:.40}. Give a name or a column number"
        )
    if items and not any(isinstance(item, str | bytes) for item in items):
        return np.array(items, np.int64)
    return np.array(names, np.str_)


def name_of(value: object) -> str | None:
    """Convert a text, bytes or a whole number to a name; None for anything else.

    Example:
        >>> [name_of(value) for value in ("ann", b"bob", 1272, 1272.0, 0.5, True, None)]
        ['ann', 'bob', '1272', '1272', None, None, None]
    """
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return None
    if isinstance(value, str):
        return spelled(value)
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        return None
    return str(int(value)) if float(value).is_integer() else None


def sampling_rate(value: Any) -> int:
    """Return samples per second as an integer.

    Example:
        >>> sampling_rate(16000.0), sampling_rate("16000")
        (16000, 16000)
    """
    try:
        rate = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, RuntimeError):
        rate = float("nan")
    if not rate.is_integer():
        shown = f"{value!r:.40}" if isinstance(value, str | float) else type(value).__name__
        raise UsageError(
            f"invalid rate {shown}: use a whole number of samples per second, such as 16000"
        )
    return int(rate)


def is_array(value: object) -> bool:
    """Return whether an object holds values, as an array, a tensor, a series or a list does."""
    if isinstance(value, list | tuple):
        return all(isinstance(first, Real) or is_array(first) for first in value[:1])
    if isinstance(value, memoryview | bytes | bytearray):
        return True
    return hasattr(value, "__array__") or hasattr(value, "toarray") or hasattr(value, "typecode")


def _numbers(array: _Array) -> _Array:
    """Return an array of numbers; a ValueError's text continues after the values' name."""
    if array.dtype.names:
        raise ValueError("are records: give one field as an array")
    kind = array.dtype.kind
    if kind in _OTHERS:
        raise ValueError(f"are {_OTHERS[kind]}: give real numbers")
    if kind == "O":
        types = set(map(type, array.flat))
        if any(issubclass(kind, str | bytes) for kind in types):
            raise ValueError("contain text: give real numbers")
        missing = [kind for kind in types if kind.__name__ in _MISSING]
        wrong = [t for t in types if t not in missing and not issubclass(t, Real | Decimal)]
        if wrong:
            raise ValueError(f"are {wrong[0].__name__} objects in part: give real numbers only")
        plain = [float("nan") if type(v) in missing else float(v) for v in array.flat]
        return np.array(plain, np.float64).reshape(array.shape)
    if kind == "V":  # a precision that NumPy does not have, such as bfloat16
        try:
            return array.astype(np.float32)
        except (TypeError, ValueError):
            raise ValueError(f"are {array.dtype}: give real numbers") from None
    return array


def _as_array(values: Any) -> _Array:
    """Return an array of any type; a ValueError's text continues after the values' name."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            raise ValueError(_MASKED)
        values = values.data
    if isinstance(values, np.ndarray):
        return values if isinstance(values, np.memmap) else np.asarray(values)
    if hasattr(values, "toarray") or getattr(values, "is_sparse", False):
        raise ValueError("are sparse: give a dense array")
    kind = type(values).__name__
    if values is None or isinstance(values, str | bytes | bytearray):
        raise ValueError(f"are {kind}: give an array")
    if isinstance(values, list | tuple) and _has_arrays(values):
        values = [_as_array(value) for value in values]
    try:
        return np.asarray(_of_tensor(values) if hasattr(values, "detach") else values)
    except Exception:  # whatever the other library raises
        raise ValueError(
            f"cannot be read from {kind}: give an array with rows of equal length"
        ) from None


def _of_tensor(tensor: Any) -> _Array:
    """Return a tensor of torch; precisions that NumPy does not have become single precision."""
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    try:
        return np.asarray(tensor.numpy())
    except TypeError:
        return np.asarray(tensor.float().numpy())


def _has_arrays(values: Any) -> bool:
    """Return whether a list contains an array or a tensor, at any depth."""
    return any(
        _has_arrays(value)
        if isinstance(value, list | tuple)
        else hasattr(value, "__array__") and not isinstance(value, np.generic)
        for value in values
    )
