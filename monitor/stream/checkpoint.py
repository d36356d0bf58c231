"""The checkpoint of a run: all that it needs to be resumed as if it had never stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monitor.atomic import sweep
from monitor.errors import MonitorError, StoreError
from monitor.population.storing import read_store, store_kind, write_store
from monitor.private_files import check_private
from monitor.protocols import Stateful
from monitor.safe_text import printable
from monitor.stream.records import RunTotals
from monitor.stream.remembered import check_state

if TYPE_CHECKING:
    from monitor.stream.monitor import Monitor
    from monitor.stream.pair import MonitorPair

__all__ = ["Checkpoint", "state_path"]

_KIND = "checkpoint"
_ARCHIVE = b"PK"


def state_path(run: Path) -> Path:
    """Where the checkpoint of a run lies: beside its JSON lines."""
    return run.with_name(run.name + ".state")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Writes and reads the checkpoint of one run (npz without pickle, 0600, atomic).

    Holds the sums of the sketches and counters, never audio.

    Attributes:
        path: the checkpoint file.
        configuration: what must be the same when the run is resumed.
    """

    path: Path
    configuration: Mapping[str, Any]

    def save(
        self,
        monitor: Monitor | MonitorPair,
        tally: RunTotals,
        rules: Sequence[Stateful],
        offset: int,
    ) -> None:
        """Remember the run as of ``offset`` bytes of its JSON lines."""
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
        """Take the run up again.

        Returns:
            the byte offset to cut its JSON lines back to.

        Raises:
            StoreError: there is no checkpoint, it is damaged, of another run or another user's.
        """
        if not self.path.exists():
            run = self.path.with_suffix("")
            taken = run.exists() and run.stat().st_size > 0
            raise StoreError(
                f"{self.path.name}: there is nothing to resume; leave out resume=True to start anew"
                + (f", with replace=True to overwrite {run.name}" if taken else "")
            )
        check_private(self.path)  # whoever wrote it would know what a protector draws
        header, arrays = read_store(self.path, _KIND)
        try:
            saved = header["configuration"]
            now = json.loads(json.dumps(dict(self.configuration)))
            differs = [key for key in {**now, **saved} if now.get(key) != saved.get(key)]
            if differs:
                what = printable(", ".join(differs))
                old = "with the transcript as it was it goes on; " if differs == ["words"] else ""
                raise StoreError(
                    f"{self.path.name}: is of another run (not the same: {what}); "
                    f"{old}run with replace=True to start anew"
                )
            check_state(header, arrays, monitor.state()[1], vars(tally))
            monitor.restore(header["monitor"], arrays)
            tally.restore(header["tally"])
            for rule, state in zip(rules, header["rules"], strict=True):
                rule.restore(state)
            return int(header["offset"])
        except MonitorError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{self.path.name}: is damaged; run with replace=True") from error

    def check(self) -> None:
        """See to it that nothing else lies in this place.

        Raises:
            StoreError: a file of somebody else's would be overwritten, and removed at the end.
        """
        if self._is_foreign():
            raise StoreError(
                f"{self.path.name} lies where the checkpoint belongs and is none; move it away, or "
                "give the run another name"
            )

    def remove(self) -> None:
        """The run has ended: nothing is left to resume, nor of saves that were killed."""
        if not self._is_foreign():
            self.path.unlink(missing_ok=True)
        sweep(self.path)

    def _is_foreign(self) -> bool:
        """Whether there is something that no version of this program has written as one."""
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
