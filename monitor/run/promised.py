"""What a mechanism promises of a stream so far, beside what is measured of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from monitor.declared_words import declared_in_words
from monitor.records.declared import declared_record
from monitor.types import Notice

if TYPE_CHECKING:
    from monitor.protectors.declared import Declared
    from monitor.run.protection import ProtectedSide
    from monitor.stream.monitor import Monitor

__all__ = ["Promised"]


class Promised:
    """Composes the epsilon that a protector, or noise on frames, declares for each window.

    Of a protected stream all windows count, in speech or not, and of every channel: each says
    something of the voice. Of frames those that the monitor has heard.

    Args:
        declared: the mechanism.
        monitor: of the clear side, or the only one.
        side: the protected side; None for frames with noise.

    Example:
        >>> from monitor import Monitor, Population
        >>> from monitor.protectors.declared import Declared
        >>> promised = Promised(Declared("laplace:1", 1.0, 3.0), Monitor(Population.reference()))
        >>> promised.of({"features": {"voice": {"usable": 6.0}}})["windows"]
        2
    """

    def __init__(
        self, declared: Declared, monitor: Monitor, side: ProtectedSide | None = None
    ) -> None:
        self._declared, self._monitor, self._side = declared, monitor, side

    @classmethod
    def of_run(cls, monitor: Monitor, side: ProtectedSide | None) -> Self | None:
        """What is promised of what a run is about to hear; None where nothing is."""
        if side is not None:
            declared = side.protector.declared
        elif monitor.noise:
            from monitor.protectors.declared import Declared

            seconds = monitor.population.features[monitor.features[0]].spec.frame_seconds
            declared = Declared.of_noise(monitor.noise, seconds)
        else:
            return None
        return None if declared is None else cls(declared, monitor, side)

    @property
    def record(self) -> dict[str, Any]:
        """What the ``start`` record says of it."""
        from monitor.protectors.promise import empty_after

        declared = self._declared
        return {
            "mechanism": declared.mechanism,
            "epsilon_nats": declared.epsilon,
            "window_seconds": declared.window_seconds,
            "delta": declared.delta,
            "empty_after": empty_after(declared.epsilon),
        }

    @property
    def notice(self) -> Notice:
        """What a person should know before the stream is heard."""
        return Notice(
            "declared",
            f"{declared_in_words(self.record)} (33 bits tell one person from all others alive). It "
            "holds in exact arithmetic, and is not proved of floating-point numbers; "
            "what is measured is of attackers that were tried, and no promise",
            level="info",
        )

    def of(self, reading: Mapping[str, Any]) -> dict[str, Any]:
        """What a reading says of it."""
        return declared_record(self._declared.after(self._windows(reading)))

    def _windows(self, reading: Mapping[str, Any]) -> int:
        if self._side is not None:
            begun = self._monitor.recordings.number  # each may begin with part of a window
            windows = self._declared.windows(reading["seconds"])
            return self._side.protector.channels_heard * (windows + begun)
        features = self._monitor.population.features
        return sum(
            round(each["usable"] / features[name].spec.frame_seconds)
            for name, each in reading["features"].items()
        )
