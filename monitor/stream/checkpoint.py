"""Checkpoints of a run, from which it resumes exactly."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from monitor.errors import Argument, Message, MonitorError, StoreError
from monitor.events.keys import HEADLINES, misfit
from monitor.files import check_private, sweep
from monitor.population.store import read_store, store_kind, write_store
from monitor.protocols import Stateful
from monitor.safe_text import printable
from monitor.stream.records import RunTotals
from monitor.types import AnyArray

if TYPE_CHECKING:
    from monitor.stream.monitor import Monitor
    from monitor.stream.pair import MonitorPair


_MOST = 1e15
_FLAG = {"type": "boolean"}
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 1 << 53}
_COUNTS = {"type": "object", "additionalProperties": _COUNT}
_NUMBER = {"type": "number", "minimum": -_MOST, "maximum": _MOST}
_FIGURE = {**_NUMBER, "type": ["number", "null"]}
_OPEN = {"type": ["object", "null"], "properties": {"since_seconds": _NUMBER, "features": _TEXTS}}
_EVIDENCE = {
    "type": "object",
    "properties": {"speech": _COUNT, **dict.fromkeys(("frames", "usable"), _COUNTS)},
}
_NOTICE = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("kind", "text"), _TEXT),
        "recording": _COUNT,
        "level": {"enum": ["warning", "info"]},
        "fields": {"type": "object"},
        "seconds": _NUMBER,
    },
}
_TOP = {
    "type": "array",
    "items": {"type": "array", "prefixItems": [_TEXT, _FIGURE], "minItems": 2, "maxItems": 2},
}
_HEADLINE = {"enum": list(HEADLINES)}
_LAST = {
    "type": ["object", "null"],
    "properties": {"top": _TOP, "at_least": {"type": ["boolean", "null"]}, "headline": _HEADLINE},
    "additionalProperties": _FIGURE,
}
_OBSERVERS: Mapping[str, object] = {
    "conditions": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("tick", "seconds", "due"), _COUNT),
            "now": {"type": ["object", "null"], "additionalProperties": _FIGURE},
            "times": _COUNTS,
            "noticed": _TEXTS,
        },
    },
    "segments": {"type": "object", "properties": {"whole": _FLAG, "chosen": _COUNT}},
    "changes": {
        "type": "object",
        "properties": {
            "open": _OPEN,
            "change": {
                "type": "object",
                "properties": {"tick": _COUNT, "asked": _TEXTS, "one_is_enough": _FLAG},
            },
        },
    },
    "recordings": {
        "type": "object",
        "properties": {
            "judged": _COUNT,
            "strange": {"type": "array", "items": _COUNT},
            "start": _EVIDENCE,
            "voice": _EVIDENCE,
        },
    },
}
_MONITOR_KEYS: Mapping[str, object] = {
    **dict.fromkeys(("tick", "speech", "read", "stream", "losses"), _COUNT),
    **dict.fromkeys(("frames", "usable"), _COUNTS),
    "carried": _EVIDENCE,
    "peak": _NUMBER,
    "noticed": {"type": "array", "items": _NOTICE},
    "observers": {"type": "object", "properties": _OBSERVERS},
}
_MONITOR: Mapping[str, object] = {"type": "object", "properties": _MONITOR_KEYS}
_HEADER: Mapping[str, object] = {
    "properties": {
        "configuration": {"type": "object"},
        "offset": _COUNT,
        "tally": _TEXT,
        "monitor": {
            **_MONITOR,
            "properties": {
                **_MONITOR_KEYS,
                "protected": {"type": "object", "additionalProperties": _MONITOR},
            },
        },
        "rules": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "rule": _TEXT,
                    "raised": _FLAG,
                    "was_raised": _FLAG,
                    **dict.fromkeys(("since", "first"), _FIGURE),
                    **dict.fromkeys(("speech", "held", "span"), _NUMBER),
                    "change": _OPEN,
                    "points": {
                        "type": "array",
                        "items": {"type": "array", "items": _NUMBER, "minItems": 3, "maxItems": 3},
                    },
                    "session": {**_COUNT, "type": ["integer", "null"]},
                    "seed": _TEXT,
                    "over": _FLAG,
                    "crossings": {
                        "type": "array",
                        "items": {"type": "array", "items": _FIGURE, "minItems": 3, "maxItems": 3},
                    },
                    "due": _NUMBER,
                    "last": _LAST,
                    "written": _COUNTS,
                    "waiting": {
                        "type": "array",
                        "items": {
                            "type": "array",
                            "prefixItems": [{"enum": ["readings", "alerts"]}, _NUMBER, _TEXT],
                            "minItems": 3,
                            "maxItems": 3,
                        },
                    },
                },
            },
        },
    }
}
_TALLY: Mapping[str, object] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("readings", "gaps", "changes", "alerts", "warnings"), _COUNT),
        **dict.fromkeys(("failures", "lost", "silent", "notices", "noticed", "undecided"), _TEXTS),
        "lost_seconds": _NUMBER,
        "last": {**_LAST, "type": "object"},
    },
}

_EARLY = {"early": "f", "early_at": "i"}
"""Arrays that a new monitor lacks, by kind of number: the early frame of an unfinished window."""


def check_state(
    header: Mapping[str, Any],
    arrays: Mapping[str, AnyArray],
    fresh: Mapping[str, AnyArray],
    tally: Collection[str],
) -> None:
    """Refuse (StoreError) a state that no run has: the file may be forged.

    ``fresh`` are the arrays of a new monitor, ``tally`` the keys of a tally. A missing
    entry raises KeyError, TypeError or ValueError.
    """
    wrong = misfit(header, _HEADER) or misfit(counted := orjson.loads(header["tally"]), _TALLY)
    if wrong is None and set(counted) != set(tally):
        wrong = "tally"
    for monitor in (header["monitor"], *header["monitor"].get("protected", {}).values()):
        features = set(monitor["frames"])
        if not set(monitor["usable"]) <= features:
            wrong = "usable"
        recordings = monitor["observers"]["recordings"]
        for totals in (monitor.get("carried"), recordings.get("start"), recordings.get("voice")):
            if (
                totals is not None
                and not set(totals["frames"]) == set(totals["usable"]) == features
            ):
                wrong = "set of features"
    for rule in header["rules"]:
        if (last := rule.get("last")) is not None and None in map(last.get, ("seconds", "speech")):
            wrong = "last"
    for name, array in arrays.items():
        group, _, feature = name.rpartition("/")
        template = fresh.get(name, fresh.get(f"sketch/{feature}"))
        if (early := _EARLY.get(group.rpartition("/")[2])) is not None:
            fits = (array.dtype.kind, array.ndim) == (early, 1)
        elif template is None:
            fits = False
        else:
            fits = (array.dtype, array.ndim) == (template.dtype, template.ndim)
        if not fits:
            wrong = "array"
        elif array.size and not (array.min() >= -_MOST and array.max() <= _MOST):
            wrong = "sum"
    if wrong is not None:
        raise StoreError(f"the checkpoint does not fit: its {printable(wrong)[:40]} makes no sense")


_KIND = "checkpoint"
_ARCHIVE = b"PK"


def state_path(run: Path) -> Path:
    """Return the path of a run's checkpoint: beside its JSON lines."""
    return run.with_name(run.name + ".state")


_REPLACE = Argument("replace", "True")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """File with everything needed to resume a run as if it had never stopped.

    It is npz without pickle, 0600, written atomically. It has sums of sketches and counters, never
    audio. A run can only be resumed with an equal ``configuration``.
    """

    path: Path
    configuration: Mapping[str, object]

    def save(
        self,
        monitor: Monitor | MonitorPair,
        tally: RunTotals,
        rules: Sequence[Stateful],
        offset: int,
    ) -> None:
        """Save the run as of ``offset`` bytes of its JSON lines."""
        plain, arrays = monitor.state()
        header = {
            "configuration": dict(self.configuration),
            "monitor": plain,
            "tally": tally.state(),
            "rules": [rule.state() for rule in rules],
            "offset": offset,
        }
        write_store(self.path, _KIND, header, arrays, tidy=False)  # once a second

    def load(
        self, monitor: Monitor | MonitorPair, tally: RunTotals, rules: Sequence[Stateful]
    ) -> int:
        """Restore the run, and return the byte offset to cut its JSON lines back to.

        StoreError if there is no checkpoint, or it is damaged, of another run or of another user.
        """
        if not self.path.exists():
            resume, run = Argument("resume", "True"), self.path.with_suffix("").name
            nothing = f"{self.path.name}: nothing to resume. Leave out ", resume
            raise StoreError(Message(*nothing, ". Add ", _REPLACE, f" to overwrite {run}"))
        check_private(self.path)  # another author would know an anonymiser's random numbers
        header, arrays = read_store(self.path, _KIND)
        try:
            saved = header["configuration"]
            now = json.loads(json.dumps(dict(self.configuration)))
            differs = [key for key in {**now, **saved} if now.get(key) != saved.get(key)]
            if differs:
                what = printable(", ".join(differs)).replace("_", " ")
                old = (
                    "Resume with its transcript, or run with "
                    if differs == ["words"]
                    else "Run with "
                )
                text = f"{self.path.name} belongs to another run (different: {what}). {old}"
                raise StoreError(Message(text, _REPLACE, " to start again"))
            check_state(header, arrays, monitor.state()[1], vars(tally))
            monitor.restore(header["monitor"], arrays)
            tally.restore(header["tally"])
            for rule, state in zip(rules, header["rules"], strict=True):
                rule.restore(state)
            return int(header["offset"])
        except MonitorError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            text = f"{self.path.name} is damaged. Run with "
            raise StoreError(Message(text, _REPLACE)) from error

    def check(self) -> None:
        """Refuse to overwrite, and later to remove, another program's file."""
        if self._is_foreign():
            raise StoreError(
                f"{self.path.name} has the name of the checkpoint but is another file. Move it, or "
                "rename the run"
            )

    def remove(self) -> None:
        """Delete the checkpoint of an ended run, and the remains of interrupted saves."""
        if not self._is_foreign():
            self.path.unlink(missing_ok=True)
        sweep(self.path)

    def _is_foreign(self) -> bool:
        """Return whether the path has anything but a checkpoint of this program."""
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_file()):
            return True
        try:
            with self.path.open("rb") as file:
                archive = file.read(len(_ARCHIVE)) == _ARCHIVE
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return not archive or store_kind(self.path) not in (_KIND, None)  # None: ours, damaged
