"""Several processes that run generators, each ahead of the program that takes its results."""

from __future__ import annotations

import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from monitor.errors import MonitorError
from monitor.managed import Managed
from monitor.workers import THREADS, no_interrupt

__all__ = ["GeneratorProcesses"]

AHEAD = 120
"""Results of one process that may wait to be taken."""

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


class GeneratorProcesses(Managed, Generic[_Task, _Result]):
    """``work(task)``, a generator, for every task: the tasks are dealt out to some processes.

    Each process does its tasks one after the other, with one thread, and waits when it is far
    ahead. Nothing is left of them after ``close``.

    Args:
        work: a function that another process can import.
        tasks: they and what the generators yield must be picklable.
        jobs: processes. Python starts them afresh, so that a script must begin its work under
            ``if __name__ == "__main__":``.

    Example:
        >>> with GeneratorProcesses(iter, ["ab", "c"], jobs=2) as processes:
        ...     [list(processes.of(place)) for place in range(2)]
        [['a', 'b'], ['c']]
    """

    def __init__(
        self, work: Callable[[_Task], Iterator[_Result]], tasks: Sequence[_Task], jobs: int
    ) -> None:
        context = get_context("spawn")  # a fork could inherit a lock that nobody will release
        self._jobs = min(jobs, len(tasks))
        self._waiting: list[deque[tuple[int, str, Any]]] = [deque() for _ in range(self._jobs)]
        self._left = [len(tasks[worker :: self._jobs]) for worker in range(self._jobs)]
        self._ends: list[Connection] = []
        self._processes: list[Any] = []
        for worker in range(self._jobs):
            mine, theirs = context.Pipe(duplex=False)
            self._ends.append(mine)
            # as bytes: what they need is imported when there is to be one thread only
            held = pickle.dumps((work, [*enumerate(tasks)][worker :: self._jobs]))
            process = context.Process(target=_work, args=(theirs, held), daemon=True)
            with no_interrupt():  # Ctrl-C is for this process
                process.start()
            theirs.close()
            self._processes.append(process)

    def of(self, place: int) -> Iterator[_Result]:
        """What the generator of this task yields; tasks are asked for once, and in order.

        Raises:
            MonitorError: that of the work, or a process was ended from outside.
        """
        worker = place % self._jobs
        while True:
            at, what, value = self._next(worker)
            if at < place:  # what was left of an earlier one
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
        """The next word of one process; what the others say meanwhile is kept."""
        while not self._waiting[worker]:
            heard = {
                end: k
                for k, end in enumerate(self._ends)
                if self._left[k] and (k == worker or len(self._waiting[k]) < AHEAD)
            }
            for end in connection.wait(list(heard)):
                k = heard[end]  # type: ignore[index]
                try:
                    word = self._ends[k].recv()
                except (EOFError, OSError):
                    raise MonitorError(
                        f"one of {self._jobs} processes has ended in the midst of its work "
                        "(killed, or out of memory?); try again with fewer"
                    ) from None
                self._left[k] -= word[1] != "yielded"
                self._waiting[k].append(word)
        return self._waiting[worker].popleft()


def _work(end: Connection, held: bytes) -> None:
    """The whole life of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(dict.fromkeys(THREADS, "1"))

    def tell(*word: object) -> None:
        try:
            end.send(word)
        except OSError:  # nobody listens any more
            raise SystemExit from None

    work, tasks = pickle.loads(held)
    for place, task in tasks:
        try:
            for result in work(task):
                tell(place, "yielded", result)
        except MonitorError as error:
            tell(place, "failed", error)
        else:
            tell(place, "ended", None)
