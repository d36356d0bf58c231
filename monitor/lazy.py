"""Names imported at first use (timed in ``benchmarks/runs.py``), and settings of the process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from importlib import import_module
from threading import RLock
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

own_process = False  # whether this is the command line's process, or one of its workers


def take_process() -> None:
    """Mark this process as our own: its standard error and signals may be changed."""
    global own_process
    own_process = True


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def once(make: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Cache results like `functools.cache`; other threads wait while one computes."""
    cached: Any = cache(make)
    lock = RLock()

    @wraps(make)
    def find(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with lock:
            result: _Result = cached(*args, **kwargs)
        return result

    return find


def lazily(
    package: str, homes: Mapping[str, str] | None = None, rooms: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a ``__getattr__`` and a ``__dir__`` for a package, so that importing it loads nothing.

    ``homes`` maps each submodule to the names in it, separated by spaces. By default, names are
    those that the package imports under ``if TYPE_CHECKING:``. ``rooms`` are submodules that are
    attributes themselves.
    """

    @cache
    def modules() -> dict[str, str]:
        if homes is None:
            return _typing_imports(package)
        return {name: f"{package}.{home}" for home in homes for name in homes[home].split()}

    def find(name: str) -> Any:
        if name in rooms or modules().get(name) == package:
            return import_module(f"{package}.{name}")
        if name in modules():
            return getattr(import_module(modules()[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules(), *rooms})

    return find, names


def _typing_imports(package: str) -> dict[str, str]:
    """Map each name that a package imports only for types to its module."""
    import ast  # which is slow to load

    loader: Any = sys.modules[package].__spec__.loader  # type: ignore[union-attr]
    blocks = [
        node for node in ast.parse(loader.get_source(package)).body if isinstance(node, ast.If)
    ]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


class ProcessSetting:
    """A setting of the whole process: the first user makes it, the last one undoes it.

    ``make`` returns the function that undoes it. Use it as a context; it may be nested, and several
    threads may use it at once.
    """

    def __init__(self, make: Callable[[], Callable[[], object]]) -> None:
        self._make, self._lock, self._users = make, RLock(), 0
        self._undo: Callable[[], object] = lambda: None

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._undo = self._make()
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._undo()


class Managed:
    """An object that is closed when its ``with`` block ends."""

    def close(self) -> None:
        """Release resources; does nothing by default."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
