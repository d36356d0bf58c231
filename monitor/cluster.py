"""Does work on the workers of a dask scheduler: several machines, or processes of this one.

dask's messages are pickles: whoever reaches a scheduler, a worker or what runs between them can run
code there and here. Use schedulers that you trust, on a private network or with TLS (SECURITY.md).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import pickle
import threading
import time
import warnings
from asyncio import CancelledError
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from concurrent import futures
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
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
from monitor.managed import Managed

CONNECT_SECONDS = 4.0  # to reach a scheduler
_SCHEDULER_SECONDS = 5.0
_PATIENCE_SECONDS = 60.0  # for a scheduler that was there, or a worker: it may be very busy
_LOOK_SECONDS = 5.0  # between looks at whether there are any workers
_KNOWN_SECONDS = 1.0  # between counts of the workers while work is handed out
_NO_PAGE = "127.0.0.1:0"  # where dask listens for a browser: else on every interface
_ALONE: dict[str, object] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.profile.enabled": False,  # looks at every worker 100 times a second
    "distributed.admin.tick.interval": "1s",  # every process looks at itself 50 times
}
"""Of a local cluster: it shows nothing, writes nothing that it holds to the disk, and is quiet."""
_INSTALL = "pip install 'speaker-disclosure-monitor[cluster]'"
_SAME = "install the same there"
# on which the last bits of what is heard depend
_LIBRARIES = ("numpy", "scipy", "soundfile", "soxr", "webrtcvad-wheels")

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class _Terms:
    """What must be the same on a worker as here.

    Attributes:
        libraries: their versions.
        alike: what ``alike`` says.
        asked: what says so, with what it is given.
    """

    libraries: dict[str, str]
    alike: object
    asked: str


@dataclass(frozen=True, slots=True)
class _Order:
    """One task, as it travels.

    Attributes:
        work, alike, task: as given to `Cluster.each_in_order`.
        terms: under which it is done.
        sizes: bytes of each file that it reads, where it can be read here.
    """

    work: Callable[[Any], Any]
    alike: Callable[[], object]
    task: Any
    terms: _Terms
    sizes: dict[str, int] = field(default_factory=dict)


class Cluster(Managed, Workers):
    """The workers of a dask scheduler, for `monitor.jobs.each_in_order`.

    Results do not depend on how many workers there are, nor on which does what. What a worker that
    dies was doing is done by another one. Each process of the workers does one task at a time, with
    one thread; workers may come and go.

    Args:
        where: of the scheduler, as ``tcp://HOST:PORT`` or ``tls://HOST:PORT`` (its certificates as
            dask's configuration says); or ``local`` for one worker a core of this machine, and
            ``local:K`` for K of them, reached through certificates of their own by nobody else.

    Raises:
        UsageError: no such place, or the extra ``cluster`` is not installed.
        MonitorError: the scheduler cannot be reached, or runs another version.
    """

    def __init__(self, where: str, tell: Callable[[str], None] = lambda _: None) -> None:
        self._where, self._tell = where, tell
        self._there: set[str] = set()  # addresses of workers
        self._held = ExitStack()
        try:
            with warnings.catch_warnings():  # dask's own is a table
                warnings.filterwarnings("ignore", "Mismatched versions found")
                self._client = self._connect()
            self._check_code()
            self._tell_of_dask()
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
        """``work(task)`` for every task, in order: see `monitor.jobs.each_in_order`."""
        from distributed.protocol.pickle import dumps

        libraries = {name: version(name) for name in _LIBRARIES}
        terms = _Terms(libraries, alike(), repr(alike))
        name = getattr(getattr(work, "func", work), "__name__", "work").strip("_")

        def submit(task: _Task) -> Any:
            # as bytes: else the scheduler unpickles it, for which it loads the whole program
            order = dumps(_Order(work, alike, task, terms, _sizes(reads(task))))
            key = f"monitor-{name}-{os.urandom(16).hex()}"
            with self._gone_is_told():
                return self._client.submit(_do, order, _code(), key=key, pure=False)

        counted, known_until = 0, 0.0

        def room() -> int:
            nonlocal counted, known_until
            if time.monotonic() >= known_until:  # to ask costs as much as to hand out a task
                counted, known_until = self._threads(), time.monotonic() + _KNOWN_SECONDS
            return ITEMS_AHEAD * max(2, counted)

        yield from in_order(tasks, submit, self._result, room, arrived)

    def close(self) -> None:
        """Let go of the scheduler, and end a local cluster."""
        self._held.close()

    def _connect(self) -> Any:
        try:
            with no_interrupt():  # a local cluster's processes do not hear of Ctrl-C
                import dask
                from distributed import Client
        except ModuleNotFoundError as error:
            raise UsageError(f"a scheduler needs {error.name}: {_INSTALL}") from None
        self._held.enter_context(_quiet())
        self._held.enter_context(
            dask.config.set({"distributed.comm.timeouts.connect": CONNECT_SECONDS})
        )
        scheme, _, rest = self._where.partition(":")
        if scheme == "local":
            return self._held.enter_context(self._local(rest))
        if scheme not in ("tcp", "tls") or not rest.startswith("//"):
            raise UsageError(
                f"{self._where!r} is no scheduler: give tcp://HOST:PORT, tls://HOST:PORT, or local"
            )
        if scheme == "tls" and not dask.config.get("distributed.comm.tls.client.cert"):
            raise UsageError(
                f"{self._where}: tls takes certificates, which dask's configuration names "
                "(DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ...__CLIENT__CERT, ...__CLIENT__KEY)"
            )
        try:
            asyncio.run(asyncio.wait_for(_answer_of(self._where), CONNECT_SECONDS))
            client = Client(self._where, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise MonitorError(
                f"no dask scheduler answers at {self._where} ({reason}); start one with "
                "`dask scheduler --host HOST`, or check the address"
            ) from None
        return self._held.enter_context(client)

    @contextmanager
    def _local(self, count: str) -> Iterator[Any]:
        """A client of processes of this machine that nobody else can reach."""
        import dask
        from distributed import Client, LocalCluster
        from distributed.security import Security

        if count and not (count.isdecimal() and int(count) > 0):
            raise UsageError(f"local:{count}: K of local:K is a number of processes")
        try:
            security = Security.temporary()
        except ImportError:
            raise UsageError(
                f"a local cluster needs cryptography, lest others reach it: {_INSTALL}"
            ) from None
        with dask.config.set(_ALONE), no_interrupt():
            cluster = LocalCluster(
                n_workers=int(count or cores()),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=_NO_PAGE,
                worker_dashboard_address=_NO_PAGE,
                security=security,
                silence_logs=logging.CRITICAL,
            )
        with cluster, Client(cluster, security=security, set_as_default=False) as client:
            yield client

    def _check_code(self) -> None:
        """Refuse a scheduler, or workers that are there, on which the program is not the same."""
        with self._gone_is_told():
            try:
                codes = {
                    f"the scheduler {self._where}": self._client.run_on_scheduler(
                        _code, callback_timeout=_PATIENCE_SECONDS
                    )
                }
            except ImportError as error:  # it has to read what is sent to workers
                codes = {f"the scheduler {self._where}": error}
            found = self._client.run(_code, on_error="return", callback_timeout=_PATIENCE_SECONDS)
        codes |= {f"worker {address}": each for address, each in found.items()}
        for place, code in codes.items():
            if isinstance(code, Exception):
                raise MonitorError(f"{place} cannot load the program ({code}); {_SAME}")
            if code != _code():
                raise MonitorError(_unlike(place))

    def _tell_of_dask(self) -> None:
        """Say in a line where dask, or what it is built on, is not as here."""
        with self._gone_is_told():
            found = self._client.get_versions()
        here = found["client"]["packages"]
        places = {f"the scheduler {self._where}": found["scheduler"]}
        places |= {f"worker {address}": each for address, each in found["workers"].items()}
        unlike = {}
        for place, each in places.items():
            theirs = each["packages"]
            other = [n for n in here if n not in _LIBRARIES and theirs.get(n) != here[n]]
            if other:
                unlike[place] = ", ".join(f"{n} {theirs.get(n)} (here {here[n]})" for n in other)
        for place, said in [*unlike.items()][:1]:
            more = f"; {len(unlike) - 1} more differ too" if len(unlike) > 1 else ""
            self._tell(
                f"{place} has {said}{more}. Nothing that is made depends on it, but other versions "
                f"may not understand each other; {_SAME}"
            )

    def _threads(self) -> int:
        """What the workers have, once the scheduler has said so.

        Raises:
            MonitorError: it does not, for a minute.
        """
        client, until = self._client, time.monotonic() + _PATIENCE_SECONDS
        told = False
        with self._gone_is_told():
            while True:
                try:
                    found = client.sync(
                        client.scheduler.ncores, callback_timeout=_SCHEDULER_SECONDS
                    )
                    self._tell_of_gone(found)
                    return sum(found.values())
                except TimeoutError:
                    if not told:
                        self._tell(f"the scheduler {self._where} does not answer; waiting for it")
                    told = True
                    if time.monotonic() > until:
                        raise

    def _tell_of_gone(self, found: Collection[str]) -> None:
        """Say in a line which workers are no longer there."""
        gone = sorted(self._there.difference(found))
        if gone:
            more = f" and {len(gone) - 1} more have" if len(gone) > 1 else " has"
            self._tell(f"worker {gone[0]}{more} gone; what it did not finish is done by another")
        self._there = set(found)

    def _result(self, future: Any, meanwhile: Callable[[], None]) -> Any:
        """Of one order; ``meanwhile`` is called now and then while it is waited for."""
        from distributed import KilledWorker

        told = False
        while True:
            try:
                with self._gone_is_told():
                    try:
                        done = future.result(timeout=_LOOK_SECONDS)
                    except TimeoutError:
                        alone = not self._threads()
                        if alone and not told:
                            self._tell(
                                f"waiting for workers: dask worker {self._where} --nthreads 1"
                            )
                        told = alone
                        meanwhile()
                        continue
            except KilledWorker as error:
                raise MonitorError(
                    "several workers have ended in the midst of the same work, the last of them "
                    f"{error.last_worker.address} (killed, or out of memory?)"
                ) from None
            except (ImportError, AttributeError, pickle.UnpicklingError) as error:
                raise MonitorError(f"a worker cannot load the program ({error}); {_SAME}") from None
            if isinstance(done, Exception):
                raise done
            return done

    @contextmanager
    def _gone_is_told(self) -> Iterator[None]:
        """A scheduler that is no longer there is one line."""
        try:
            yield
        except (OSError, CancelledError, futures.CancelledError, RuntimeError) as error:
            raise MonitorError(
                f"the scheduler {self._where} has gone in the midst of the work "
                f"({type(error).__name__}); start it again, and run the same command"
            ) from None


async def _answer_of(where: str) -> Any:
    """What a scheduler says of itself; dask's client waits for minutes for one that says nothing.

    Raises:
        OSError: nobody is there; also as TimeoutError.
    """
    from distributed.comm import connect
    from distributed.security import Security

    arguments = Security().get_connection_args("client")
    comm = await connect(where, timeout=CONNECT_SECONDS, **arguments)
    try:
        await comm.write({"op": "identity", "reply": True})
        return await comm.read()
    finally:
        comm.abort()


def _sizes(paths: Iterable[Path]) -> dict[str, int]:
    """Bytes of those that can be read here: of others, the work itself says what is wrong."""
    return {str(path): path.stat().st_size for path in paths if os.access(path, os.R_OK)}


@cache
def _code() -> str:
    """A mark of the package as it is here: its code and the networks that ship."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".npz", ".json"):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _unlike(place: str) -> str:
    return f"{place} has another version of the program or its networks than here; {_SAME}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the loggers of dask, which say in many lines what is said here in one."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


_one_at_a_time = threading.Lock()
"""Of a worker: whatever its threads, one task has the processor."""
_agreed: list[_Terms] = []  # of a worker: the terms that it last agreed to


def _do(pickled: bytes, code: str) -> Any:
    """The work of an order, on a worker whose program is to have this mark."""
    with _one_at_a_time:
        try:
            if _code() != code:  # of another version it may not even be unpickled
                raise MonitorError(_unlike(_worker()))
            order = _loaded(pickled)
            _check(order)
            try:
                with one_thread(), one_torch_thread():
                    return order.work(order.task)
            except MonitorError as error:
                error.args = (f"{error} (on {_worker()})", *error.args[1:])
                raise
        except Exception as error:  # as a result, so that dask does not log it
            return error


def _loaded(pickled: bytes) -> _Order:
    try:
        order = pickle.loads(pickled)
    except (ImportError, AttributeError, pickle.UnpicklingError) as error:
        raise MonitorError(f"{_worker()} cannot load the program ({error}); {_SAME}") from None
    assert isinstance(order, _Order)
    return order


def _check(order: _Order) -> None:
    """See to it that this worker is fit for the work."""
    terms = order.terms
    if terms not in _agreed:
        for name, theirs in terms.libraries.items():
            if (mine := version(name)) != theirs:
                raise MonitorError(
                    f"{_worker()} has {name} {mine}, here is {theirs}, which would say otherwise; "
                    f"{_SAME}"
                )
        if (found := order.alike()) != terms.alike:
            raise MonitorError(
                f"{_worker()} makes features by other networks than here: {found} and not "
                f"{terms.alike}; give both the same"
            )
        _agreed[:] = [terms]
    for name, size in order.sizes.items():
        held = _sizes([Path(name)])
        if held.get(name) != size:
            what = "is another file" if held else "cannot be read"
            raise MonitorError(
                f"{name} {what} on {_worker()}: recordings and outputs must lie on a file system "
                "that all share, under the same path"
            )


def _worker() -> str:
    from distributed import get_worker

    return f"worker {get_worker().address}"
