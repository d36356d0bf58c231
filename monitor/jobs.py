"""Does the same work on many items with several processes, in order, and estimates its end."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from _thread import interrupt_main
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from monitor import lazy
from monitor.errors import MonitorError
from monitor.lazy import Managed, ProcessSetting, once
from monitor.phrases import clock_time

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.connection import Connection
ITEMS_AHEAD = 4  # pending tasks per process, including results that wait for an earlier one
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LOOK_SECONDS = 0.1
_GRACE_SECONDS = 2.0
_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_Future = TypeVar("_Future", bound=Any)
_busy = _stopping = False
"""State of a worker: whether it is in a task, which may be interrupted, and whether it must stop.
"""
AHEAD = 120  # results of one process that may wait to be read
_RESOLUTION_SECONDS = 0.1
_FEWEST_STEPS = 6
_STEADY = 1.5


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit numpy's matrix products to one thread, if its library allows that.

    More threads would change the rounding. The products are small, so on a busy machine threads
    would wait for each other twenty times as long as they work.
    """
    with _ONE_THREAD, _openmp().limit(limits=1) if _openmp().lib_controllers else nullcontext():
        yield


@once
def _libraries() -> Any:
    """Load numpy, and return a controller of all loaded linear algebra libraries."""
    import numpy as np  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@once
def _openmp() -> Any:
    """Return a controller of the OpenMP libraries, which have one setting per thread."""
    return _libraries().select(threading_layer="openmp")


def _limit_process() -> Callable[[], object]:
    """Limit the libraries that have one setting per process; return a function that undoes it."""
    libraries = [
        library
        for library in _libraries().lib_controllers
        if getattr(library, "threading_layer", "") != "openmp"
    ]
    before = [library.num_threads for library in libraries]
    _set_threads(libraries, [1] * len(libraries))
    return partial(_set_threads, libraries, before)


def _set_threads(libraries: Sequence[Any], counts: Sequence[int]) -> None:
    for library, count in zip(libraries, counts, strict=True):
        # threadpoolctl 3.8 obeys only the thread that called it first
        release = getattr(library, "clear_controlling_thread", lambda **_: None)
        release(force=True)
        library.set_num_threads(count)
        release(force=True)


_ONE_THREAD = ProcessSetting(_limit_process)


class Workers(ABC):
    """Workers outside this process and its children, such as `monitor.cluster`."""

    @abstractmethod
    def each_in_order(
        self,
        work: Callable[[_Task], _Result],
        tasks: Iterable[_Task],
        reads: Callable[[_Task], Iterable[Path]],
        alike: Callable[[], object],
        arrived: Callable[[_Result], None] | None,
    ) -> Generator[_Result, None, None]:
        """Yield results as `each_in_order` does."""


Jobs: TypeAlias = int | Workers  # number of processes on this machine, or workers elsewhere


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_here(jobs: Jobs) -> int:
    """Return the number of threads for work that stays on this machine."""
    return jobs if isinstance(jobs, int) else cores()


def worthwhile(lengths: Iterable[float], enough: float) -> int:
    """Return how many processes get ``enough`` work each: at least 1, at most one per core."""
    maximum, total = cores(), 0.0
    for length in lengths:
        total += length
        if total >= maximum * enough:
            return maximum
    return max(1, int(total // enough))


def absolute(path: Path) -> Path:
    """Return an absolute path without resolving links."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def here(jobs: Jobs, tasks: Sized) -> bool:
    """Return whether tasks run in this process."""
    return isinstance(jobs, int) and min(jobs, len(tasks)) <= 1


def each_in_order(
    work: Callable[[_Task], _Result],
    tasks: Iterable[_Task],
    jobs: Jobs = 1,
    *,
    reads: Callable[[_Task], Iterable[Path]] = lambda _: (),
    alike: Callable[[], object] = lambda: None,
    arrived: Callable[[_Result], None] | None = None,
) -> Generator[_Result, None, None]:
    """Yield ``work(task)`` for every task, in order, each with one thread.

    Results do not depend on ``jobs``. Close the iterator (`contextlib.closing`) or exhaust it, so
    that no process remains. Interrupted work ends with KeyboardInterrupt.

    Args:
        work: a function that another process can import. Its exceptions are raised here.
        tasks: consumed on demand; tasks and results must be picklable.
        jobs: number of processes, 1 for this one, or a `monitor.cluster.Cluster`. Python spawns
            them, so a script must start its work under ``if __name__ == "__main__":``.
        reads: absolute paths of a task's files. If a remote worker cannot read a file that is
            readable here, the work stops with an error naming it.
        alike: returns further dependencies of the results, such as marks of networks. If a remote
            worker returns another value, the work stops with an error naming it.
        arrived: called here with each result as soon as it arrives, before slower earlier ones, so
            that it can be saved.

    Example:
        >>> list(each_in_order(len, ["a", "", "bc"]))
        [1, 0, 2]
    """
    if not isinstance(jobs, int):
        yield from jobs.each_in_order(work, tasks, reads, alike, arrived)
        return
    if isinstance(tasks, Sized):
        jobs = min(jobs, len(tasks))
    if jobs <= 1:
        for task in tasks:
            with one_torch_thread():
                result = work(task)
            if arrived is not None:
                arrived(result)
            yield result
        return
    from concurrent.futures import wait  # slow to import

    def result_of(future: Future[_Result], meanwhile: Callable[[], None]) -> _Result:
        while not future.done():
            wait([future], None if arrived is None else _LOOK_SECONDS)
            meanwhile()
        return future.result()

    processes = _Processes(jobs)
    try:
        submit = partial(processes.submit, work)
        yield from in_order(tasks, submit, result_of, lambda: ITEMS_AHEAD * jobs, arrived)
    finally:
        with ignored_interrupt():  # a second Ctrl-C would leave processes behind
            processes.close()


class _Processes:
    """Processes with one task each at a time, and a thread that waits for each result.

    Their pipes close when this process ends. A `ProcessPoolExecutor` would use named semaphores,
    about which multiprocessing's resource tracker complains if this process is killed.
    """

    def __init__(self, jobs: int) -> None:
        from concurrent.futures import ThreadPoolExecutor
        from multiprocessing import Pipe

        self._jobs = jobs
        self._stopped, self._stop = Pipe(duplex=False)
        self._threads = ThreadPoolExecutor(jobs)
        self._processes: list[tuple[Any, Connection]] = []
        self._idle: SimpleQueue[Connection] = SimpleQueue()

    def submit(self, work: Callable[[_Task], _Result], task: _Task) -> Future[_Result]:
        """Submit a task; start another process if there are fewer than ``jobs``."""
        from multiprocessing import Pipe

        with no_interrupt():
            if len(self._processes) < self._jobs:
                local, remote = Pipe()
                self._processes.append((_start(_serve, remote, self._stopped), local))
                remote.close()
                self._idle.put(local)
            return self._threads.submit(self._ask, work, task)

    def _ask(self, work: Callable[[_Task], _Result], task: _Task) -> _Result:
        """Let an idle process do a task, and wait for the result."""
        pickled = pickle.dumps((work, task))
        end = self._idle.get()
        try:
            end.send_bytes(pickled)
            answer = end.recv_bytes()
        except (EOFError, OSError):
            raise _lost(self._jobs) from None
        finally:
            self._idle.put(end)
        failed, value = pickle.loads(answer)
        if failed:
            raise value
        result: _Result = value
        return result

    def close(self) -> None:
        """Interrupt the work, and wait until all processes have ended."""
        self._stop.close()
        self._threads.shutdown(cancel_futures=True)
        for process, end in self._processes:
            end.close()
            process.join()
        self._stopped.close()


def _start(target: Callable[..., None], *args: object, daemon: bool = False) -> Any:
    """Start a process that Ctrl-C cannot interrupt before it handles SIGINT."""
    from multiprocessing import get_context

    process = get_context("spawn").Process(  # a fork could inherit a lock that stays locked
        target=target, args=args, daemon=daemon
    )
    with no_interrupt():
        process.start()
    return process


def _lost(jobs: int) -> MonitorError:
    return MonitorError(
        f"one of {jobs} processes ended during its work (killed, or out of memory?): use fewer"
    )


def in_order(
    tasks: Iterable[_Task],
    submit: Callable[[_Task], _Future],
    result: Callable[[_Future, Callable[[], None]], _Result],
    room: Callable[[], int],
    arrived: Callable[[_Result], None] | None,
) -> Generator[_Result, None, None]:
    """Yield the results of submitted tasks in order, for any kind of worker.

    ``submit`` starts a task and returns an object with ``done()``. ``result`` waits for one, and
    calls its second argument repeatedly while waiting. At most ``room()`` tasks are pending.
    """
    waiting: deque[_Future] = deque()
    reported: set[int] = set()

    def tell() -> None:
        if arrived is None:
            return
        for future in waiting:
            if id(future) not in reported and future.done():
                reported.add(id(future))
                arrived(result(future, lambda: None))

    def first() -> _Result:
        value = result(waiting[0], tell)
        tell()
        reported.discard(id(waiting.popleft()))
        return value

    for task in tasks:
        waiting.append(submit(task))
        if len(waiting) >= room():
            yield first()
    while waiting:
        yield first()


def _serve(end: Connection, stopped: Connection) -> None:
    _begin(stopped)
    with suppress(EOFError, OSError):
        while True:
            end.send_bytes(_answer(end.recv_bytes()))


def _answer(payload: bytes) -> bytes:
    """Do a task; return whether it failed, and its exception or result, pickled."""
    try:
        work, task = pickle.loads(payload)
        return pickle.dumps((False, _do(work, task)))
    except BaseException as error:
        error.add_note("".join(traceback.format_exception(error)))
        try:
            return pickle.dumps((True, error))
        except Exception as unsent:
            return pickle.dumps((True, RuntimeError(f"{error!r} cannot be sent: {unsent!r}")))


def _begin(stopped: Connection) -> None:
    """Prepare a worker before it imports anything that creates threads."""
    lazy.take_process()
    os.environ.update(dict.fromkeys(THREADS, "1"))
    signal.signal(signal.SIGINT, _interrupted)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_watch, args=(stopped,), daemon=True).start()


def _interrupted(*_: object) -> None:
    """Interrupt a task if `_watch` asks for it; ignore Ctrl-C, which the parent handles."""
    if _busy and _stopping:
        raise KeyboardInterrupt


def _watch(stopped: Connection) -> None:
    """Interrupt the work when its pipe closes, and exit soon after the parent process."""
    from multiprocessing import connection, parent_process

    global _stopping
    parent = parent_process()
    assert parent is not None
    connection.wait([stopped])
    _stopping = True
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        interrupt_main()
    while not connection.wait([parent.sentinel], 60.0):
        pass
    time.sleep(_GRACE_SECONDS)  # for work that cleans up
    os._exit(1)


def _do(work: Callable[[_Task], _Result], task: _Task) -> _Result:
    global _busy
    _busy = True
    try:
        if _stopping:
            raise KeyboardInterrupt
        with one_torch_thread():
            return work(task)
    finally:
        _busy = False


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Limit torch to one thread, since its rounding depends on the number of threads."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def no_interrupt() -> Iterator[None]:
    """Block Ctrl-C in processes that the block starts; this process gets it after the block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # started by the first process, it would unblock Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def ignored_interrupt() -> Iterator[None]:
    """Ignore Ctrl-C in the whole process; without effect if called outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class GeneratorProcesses(Managed, Generic[_Task, _Result]):
    """Processes that run the generator ``work(task)`` for every task.

    Each process does its tasks one after the other, with one thread, and pauses when it is far
    ahead. ``close`` ends them all.

    Example:
        >>> with GeneratorProcesses(iter, ["ab", "c"], jobs=2) as processes:
        ...     [list(processes.iterate_task(i)) for i in range(2)]
        [['a', 'b'], ['c']]
    """

    def __init__(
        self, work: Callable[[_Task], Iterator[_Result]], tasks: Sequence[_Task], jobs: int
    ) -> None:
        from multiprocessing import Pipe

        self._jobs = min(jobs, len(tasks))
        self._waiting: list[deque[tuple[int, str, Any]]] = [deque() for _ in range(self._jobs)]
        self._left = [len(tasks[worker :: self._jobs]) for worker in range(self._jobs)]
        self._ends: list[Connection] = []
        self._processes: list[Any] = []
        for worker in range(self._jobs):
            local, remote = Pipe(duplex=False)
            self._ends.append(local)
            # pickled here: the process must limit its threads before it imports what tasks need
            pickled = pickle.dumps((work, [*enumerate(tasks)][worker :: self._jobs]))
            self._processes.append(_start(_work, remote, pickled, daemon=True))
            remote.close()

    def iterate_task(self, index: int) -> Iterator[_Result]:
        """Yield the results of a task; call it once per task, in order."""
        worker = index % self._jobs
        while True:
            at, what, value = self._next(worker)
            if at < index:  # unread result of an earlier task
                continue
            if what == "ended":
                return
            if what == "failed":
                raise value
            yield value

    def close(self) -> None:
        """End the processes."""
        for end in self._ends:
            end.close()
        for process in self._processes:
            process.terminate()
            process.join()

    def _next(self, worker: int) -> tuple[int, str, Any]:
        """Return the next message of one process; keep what the others send meanwhile."""
        from multiprocessing import connection

        while not self._waiting[worker]:
            workers = {
                end: k
                for k, end in enumerate(self._ends)
                if self._left[k] and (k == worker or len(self._waiting[k]) < AHEAD)
            }
            for end in connection.wait(list(workers)):
                k = workers[end]  # type: ignore[index]
                try:
                    word = self._ends[k].recv()
                except (EOFError, OSError):
                    raise _lost(self._jobs) from None
                self._left[k] -= word[1] != "yielded"
                self._waiting[k].append(word)
        return self._waiting[worker].popleft()


def _work(end: Connection, payload: bytes) -> None:
    lazy.take_process()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(dict.fromkeys(THREADS, "1"))

    def tell(*word: object) -> None:
        try:
            end.send(word)
        except OSError:  # the parent process has gone
            raise SystemExit from None

    work, tasks = pickle.loads(payload)
    for index, task in tasks:
        try:
            for result in work(task):
                tell(index, "yielded", result)
        except MonitorError as error:
            tell(index, "failed", error)
        else:
            tell(index, "ended", None)


class RemainingTime:
    """Estimate of the time that a job will still take, from the amount done at each step.

    The rate is that of the second half of the elapsed time. It excludes the start of workers,
    networks being loaded and finished work that is skipped. There is no estimate before that half
    has 6 steps, and before the rates of its two parts agree within a factor of 1.5.

    Args:
        total: amount of the whole job, in any unit.
        now: seconds of the clock at its beginning.

    Example:
        >>> remaining = RemainingTime(100, now=0)
        >>> for second in range(20, 70):
        ...     remaining.add(1, now=second)
        >>> remaining.describe()
        'about 0:49 left'
    """

    def __init__(self, total: float, now: float) -> None:
        self._total = total
        self._times, self._done = [now], [0.0]

    def add(self, amount: float, now: float) -> None:
        """Add the amount of a step, done by the time ``now``."""
        done = self._done[-1] + amount
        if len(self._times) > 1 and now - self._times[-2] < _RESOLUTION_SECONDS:
            self._times[-1], self._done[-1] = now, done
        else:
            self._times.append(now)
            self._done.append(done)

    def estimate_seconds(self) -> float | None:
        """Estimate the remaining seconds after the latest step; None if there is no trend yet."""
        began, now = self._times[0], self._times[-1]
        half, later = (bisect_right(self._times, began + (now - began) * x) for x in (0.5, 0.75))
        before, between, done = self._done[half - 1], self._done[later - 1], self._done[-1]
        slower, faster = sorted((between - before, done - between))
        if len(self._times) - half < _FEWEST_STEPS or slower * _STEADY <= faster:
            return None
        return max(self._total - done, 0.0) * (now - began) / 2 / (done - before)

    def describe(self) -> str:
        """Describe the estimate for people; empty without one."""
        seconds = self.estimate_seconds()
        return "" if seconds is None else f"about {clock_time(seconds)} left"
