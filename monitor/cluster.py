"""Distribute work over the workers of a dask scheduler: machines, or processes of this one.

dask's messages are pickles. Anyone who reaches a scheduler, a worker or their connections can run
code there and here. Use schedulers that you trust, on a private network or with TLS (SECURITY.md).
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from asyncio import CancelledError
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent import futures
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from monitor.errors import MonitorError, UsageError
from monitor.jobs import (
    ITEMS_AHEAD,
    Workers,
    cores,
    in_order,
    no_interrupt,
    one_thread,
    one_torch_thread,
)
from monitor.lazy import Managed

CONNECT_SECONDS = 4.0
_LOOK_SECONDS = 5.0  # between checks whether there are any workers
_INSTALL = "pip install 'speaker-disclosure-monitor[cluster]'"
_LIBRARIES = ("speaker-disclosure-monitor", "numpy", "scipy", "soundfile", "soxr")
"""Packages on which the rounding of features depends. Workers need the same versions."""
_LOCAL: dict[str, object] = {  # no web pages, and nothing written to disk
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
}

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


class Cluster(Managed, Workers):
    """The workers of a dask scheduler, for `monitor.jobs.each_in_order`.

    Results do not depend on the number of workers or the distribution of tasks. If a worker dies,
    another repeats its task. Each worker does one task at a time, with one thread. Workers may join
    and leave.

    Args:
        where: ``tcp://HOST:PORT`` or ``tls://HOST:PORT`` of the scheduler, with certificates from
            dask's configuration. ``local`` starts one process per core of this machine, ``local:K``
            starts K. Temporary certificates keep other users out.
        tell: called with a line while waiting for workers.

    Raises:
        UsageError: an invalid address, or the extra ``cluster`` is not installed.
    """

    def __init__(self, where: str, tell: Callable[[str], None] = lambda _: None) -> None:
        self._where, self._tell = where, tell
        self._stack = ExitStack()
        try:
            self._client = self._connect()
        except BaseException:
            self.close()
            raise

    def each_in_order(
        self,
        work: Callable[[_Task], _Result],
        tasks: Iterable[_Task],
        reads: Callable[[_Task], Iterable[Path]],
        alike: Callable[[], object],
        arrived: Callable[[_Result], None] | None,
    ) -> Generator[_Result, None, None]:
        """Yield ``work(task)`` for every task, in order: see `monitor.jobs.each_in_order`."""
        terms = {name: version(name) for name in _LIBRARIES} | {"networks": alike()}

        def submit(task: _Task) -> Any:
            with self._reporting_loss():
                order = (work, task, terms, alike, _sizes(reads(task)))
                return self._client.submit(_do, *order, pure=False)

        def room() -> int:
            with self._reporting_loss():
                threads: dict[str, int] = self._client.nthreads()
                return ITEMS_AHEAD * max(2, sum(threads.values()))

        yield from in_order(tasks, submit, self._result, room, arrived)

    @property
    def client(self) -> Any:
        """Client of the scheduler, a `distributed.Client`."""
        return self._client

    def close(self) -> None:
        """Disconnect from the scheduler, and end a local cluster."""
        self._stack.close()

    def _connect(self) -> Any:
        try:
            with no_interrupt():  # keep Ctrl-C from a local cluster's processes
                import dask
                from distributed import Client, LocalCluster
                from distributed.security import Security
        except ModuleNotFoundError as error:
            raise UsageError(f"a scheduler needs {error.name}: {_INSTALL}") from None
        for name in ("distributed", "distributed.client", "distributed.core"):
            logger = logging.getLogger(name)
            self._stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL)
        scheme, _, address = self._where.partition(":")
        if scheme == "local" and (not address or (address.isdecimal() and int(address) > 0)):
            try:
                security = Security.temporary()
            except ImportError:
                raise UsageError(
                    "a local cluster needs cryptography, so that others cannot reach it: "
                    f"{_INSTALL}"
                ) from None
            with dask.config.set(_LOCAL), no_interrupt():
                cluster = LocalCluster(
                    n_workers=int(address or cores()),
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    worker_dashboard_address="127.0.0.1:0",
                    security=security,
                    silence_logs=logging.CRITICAL,
                )
            self._stack.enter_context(cluster)
            client = Client(cluster, security=security, set_as_default=False)
            return self._stack.enter_context(client)
        if scheme not in ("tcp", "tls") or not address.startswith("//"):
            raise UsageError(
                f"{self._where!r} is not a scheduler: use tcp://HOST:PORT, tls://HOST:PORT, or "
                "local"
            )
        try:
            asyncio.run(asyncio.wait_for(_greet(self._where), CONNECT_SECONDS))
            client = Client(self._where, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise MonitorError(
                f"no dask scheduler answers at {self._where} ({reason}); start one with "
                "`dask scheduler --host HOST`, or check the address and the certificates"
            ) from None
        return self._stack.enter_context(client)

    def _result(self, future: Any, meanwhile: Callable[[], None]) -> Any:
        from distributed import KilledWorker

        is_waiting = False
        while True:
            with self._reporting_loss():
                try:
                    result = future.result(timeout=_LOOK_SECONDS)
                except TimeoutError:
                    if not is_waiting and not self._client.nthreads():
                        self._tell(f"waiting for workers: dask worker {self._where} --nthreads 1")
                        is_waiting = True
                    meanwhile()
                    continue
                except KilledWorker as error:
                    raise MonitorError(
                        "several workers ended during the same task, the last at "
                        f"{error.last_worker.address} (killed, or out of memory?)"
                    ) from None
            if isinstance(result, Exception):
                raise result
            return result

    @contextmanager
    def _reporting_loss(self) -> Iterator[None]:
        """Report the loss of the scheduler in one line."""
        try:
            yield
        except (OSError, CancelledError, futures.CancelledError, RuntimeError) as error:
            raise MonitorError(
                f"lost the scheduler {self._where} during the work ({type(error).__name__}): "
                "start it again, and repeat the command"
            ) from None


async def _greet(where: str) -> None:
    """Ask a scheduler for its identity, because dask's client waits minutes for a silent one."""
    from distributed.comm import connect
    from distributed.security import Security

    arguments = Security().get_connection_args("client")
    comm = await connect(where, timeout=CONNECT_SECONDS, **arguments)
    try:
        await comm.write({"op": "identity", "reply": True})
        await comm.read()
    finally:
        comm.abort()


def _sizes(paths: Iterable[Path]) -> dict[str, int]:
    """Return the sizes of readable files in bytes; the work itself reports unreadable ones."""
    return {str(path): path.stat().st_size for path in paths if os.access(path, os.R_OK)}


_one_at_a_time = threading.Lock()
"""Lock that limits a worker to one task at a time, however many threads it has."""


def _do(
    work: Callable[[Any], Any],
    task: Any,
    terms: dict[str, object],
    alike: Callable[[], object],
    sizes: dict[str, int],
) -> Any:
    """Do a task on a worker with the client's libraries, networks and files."""
    from distributed import get_worker

    with _one_at_a_time:
        worker = f"worker {get_worker().address}"
        try:
            versions = {name: version(name) for name in _LIBRARIES} | {"networks": alike()}
            if differing := [name for name in terms if versions[name] != terms[name]]:
                name = differing[0]
                raise MonitorError(
                    f"{worker} has another {name} ({versions[name]}, here {terms[name]}), so "
                    "results would differ: install the same version there"
                )
            for name, size in sizes.items():
                if _sizes([Path(name)]).get(name) != size:
                    raise MonitorError(
                        f"{name} is missing or different on {worker}: use a file system that all "
                        "machines share under the same path"
                    )
            try:
                with one_thread(), one_torch_thread():
                    return work(task)
            except MonitorError as error:
                error.args = (f"{error} (on {worker})", *error.args[1:])
                raise
        except Exception as error:  # as a result, so that dask does not log it
            return error
