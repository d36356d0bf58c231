"""How a run hears its source: with load shedding where it is live, ahead where it is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.protocols import LiveSource, Source

if TYPE_CHECKING:
    from monitor.stream.ahead import HeardAhead
    from monitor.stream.monitor import Monitor
    from monitor.stream.pair import MonitorPair

__all__ = ["heard_ahead", "shedding_load"]

WORTHWHILE_SECONDS = 300.0
"""Of audio for each process: it takes a second or two to start."""


def shedding_load(source: LiveSource, monitor: Monitor, pair: MonitorPair | None = None) -> Source:
    """A live source whose slowest feature hears less where the machine cannot keep up.

    Args:
        source: what is heard.
        monitor: that hears it.
        pair: of which the monitor is the clear side: a feature hears less on both alike.
    """
    from monitor.stream.shedding import LoadShedding, OnBothSides, Timed

    if not source.brings.audio:  # frames cost nothing
        return source
    timed = [Timed(feature) for feature in monitor.front_end.make()]
    monitor.front_end.use(timed)
    if pair is None:
        return LoadShedding(source, timed)
    protected = [Timed(feature) for feature in pair.features]
    pair.use(protected)
    return LoadShedding(source, [OnBothSides(*each) for each in zip(timed, protected, strict=True)])


def heard_ahead(source: Source, monitor: Monitor, jobs: int | None) -> HeardAhead | None:
    """Recordings whose features several processes compute; None where one process does.

    Args:
        source: the source of the run.
        monitor: fresh or restored; features of one's own are computed in this process.
        jobs: processes; None for as many as are worth it.
    """
    from monitor.sources.beside import Beside
    from monitor.sources.chain import Chain
    from monitor.sources.file import File
    from monitor.stream.ahead import HeardAhead
    from monitor.workers import worthwhile

    each = source.sources if isinstance(source, Chain) else (source,)
    recordings = [one.recording if isinstance(one, Beside) else one for one in each]
    files = [one for one in recordings if isinstance(one, File)]
    if len(files) != len(each) or not monitor.front_end.by_name:
        return None
    if jobs is None:
        jobs = worthwhile((file.seconds or 0.0 for file in files), WORTHWHILE_SECONDS)
    if jobs < 2:
        return None

    def placed(number: int, frames: Source) -> Source:
        beside = each[number]
        return beside.around(frames) if isinstance(beside, Beside) else frames

    return HeardAhead(
        files,
        monitor.front_end.by_ear,
        jobs=jobs,
        channel=monitor.settings.channel,
        levels=monitor.on_change != "ignore",
        skip=monitor.ticks,
        placed=placed,
    )
