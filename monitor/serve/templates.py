"""Folder with the templates of people who enrolled at the page, one private file per person."""

from __future__ import annotations

import os
import stat
import threading
import unicodedata
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, reduce
from pathlib import Path

from monitor.errors import StoreError, UsageError
from monitor.files import (
    alone,
    check_private_folder,
    is_ours,
    make_folder,
    sweep,
    sweep_folder,
    unwritable,
    wiped,
)
from monitor.population.population import Population
from monitor.safe_text import JOINERS, file_name, is_printable, spelled
from monitor.virtual_files import spelled_path

MOST_CHARACTERS = 40
_SAVING = threading.Lock()
"""Lock between threads. `alone` keeps other processes out, if the file system has locks."""


def data_folder() -> Path:
    """Return the folder of a user's templates: under ``XDG_DATA_HOME``, or ``~/.local/share``."""
    configured = Path(os.environ.get("XDG_DATA_HOME") or "")
    home = configured if configured.is_absolute() else Path.home() / ".local" / "share"
    return home / "speaker-disclosure-monitor" / "people"


def checked_name(name: object) -> str:
    """Return a name in its normal spelling; UsageError if it cannot be a file name."""
    text = spelled(name) if isinstance(name, str) else ""
    if not _fits(text):
        raise UsageError(
            "a name has letters, digits, spaces, dots, dashes and apostrophes, begins with a "
            f"letter or digit, and has {MOST_CHARACTERS} characters at most"
        )
    return text


def _fits(name: str) -> bool:
    """Return whether this is a valid name; marks include vowel signs and some accents."""
    return (
        0 < len(name) <= MOST_CHARACTERS
        and (name[0].isalnum() or name[0] == "_")
        and is_printable(name)
        and all(c in f" .-_'’{JOINERS}" or unicodedata.category(c)[0] in "LMN" for c in name)
    )


@dataclass(frozen=True, slots=True)
class EnrolledPerson:
    """An enrolled person, with the date of enrolment."""

    name: str
    enrolled: datetime


class TemplateFolder:
    """Templates of people, each beside those of a base population, in a folder of one user.

    The folder is made (0700) with the first template. The default base is the shipped readers.
    """

    def __init__(self, folder: Path, base: str | None = None) -> None:
        self.folder = folder
        self._base = base

    @cached_property
    def base(self) -> Population:
        """Population against which a voice is compared."""
        return Population.reference() if self._base is None else Population.load(self._base)

    def people(self) -> list[EnrolledPerson]:
        """List all enrolled people, by name."""
        people = []
        with suppress(OSError):
            for path in sorted(self.folder.glob("*.npz")):
                name = spelled(path.stem)
                if _fits(name) and (status := _own_file(path)):
                    enrolled = datetime.fromtimestamp(status.st_mtime).astimezone()
                    people.append(EnrolledPerson(name, enrolled))
        return people

    def prepare(self) -> None:
        """Make the folder private if it exists, and remove the remains of killed saves."""
        with suppress(OSError):  # it is missing, or not readable
            others = stat.S_IMODE(self.folder.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
            names = (path.name for path in self.folder.iterdir() if path.suffix != ".npz")
            if others and (more := [name for name in names if not name.startswith(".")]):
                raise StoreError(
                    f"{self.folder} is open to other users and holds more than templates "
                    f"({file_name(more[0])}): choose a folder for templates alone (--data)"
                )
        check_private_folder(self.folder)
        sweep_folder(self.folder)

    def check_place(self) -> None:
        """Refuse a folder that cannot store templates, before a speaker reads aloud."""
        check_private_folder(self.folder)
        if reason := unwritable(self.folder):
            raise StoreError(
                f"{self.folder}: templates cannot be stored there ({reason}). Choose another "
                "folder with --data"
            )

    def check_new(self, name: str, *, replace: bool = False) -> None:
        """Refuse an invalid or taken name, and a folder that cannot store the template."""
        called = checked_name(name)
        self.check_place()
        if called in self.base.names:
            raise UsageError(f"the population already has a {called}: use another name")
        if not replace:
            self._check_free(called)

    def _check_free(self, name: str) -> None:
        if self.has(name):
            raise UsageError(
                f"{name} is enrolled already: use another name, or press “Forget” first"
            )

    def has(self, name: str) -> bool:
        """Return whether a name is enrolled."""
        return _own_file(self._path(name)) is not None

    def load(self, name: str) -> Population:
        """Load the population of one person; StoreError if not enrolled."""
        population = Population.load(self._path(name))
        if checked_name(name) not in population.names:
            raise StoreError(f"the file of {name} contains another person's template: enrol again")
        return population

    def together(self) -> Population:
        """Load all people enrolled here as one population, without the base population.

        If a file has no enrolment day, its modification day is used. Raises UsageError if no one is
        enrolled, and StoreError for a damaged file.
        """
        people = self.people()
        if not people:
            raise UsageError(f"{self.folder}: no one is enrolled there. Enrol with monitor serve")
        parts = []
        for person in people:
            person_population = self.load(person.name).chosen([person.name])
            (speaker,) = person_population.speakers
            day = person.enrolled.date().isoformat()
            parts.append(
                person_population.with_details(
                    [replace(speaker, days=(speaker.days[0], speaker.days[1] or day))]
                )
            )
        shared = set.intersection(*(set(person_population.features) for person_population in parts))
        return reduce(
            Population.joined,
            (person_population.only(sorted(shared)) for person_population in parts),
        )

    def save(self, name: str, enrolment: Population, *, replace: bool = False) -> Population:
        """Store a new template (0600) together with the base; return the written population.

        UsageError if the name was enrolled meanwhile, unless ``replace`` overwrites its template.
        """
        population = self.base.only(enrolment.features).joined(enrolment)
        make_folder(self.folder)
        path = self._path(name)
        with _SAVING, alone(path):
            if not replace:
                self._check_free(name)
            with wiped(path):
                population.save(path)
        return population

    def forget(self, name: str) -> None:
        """Overwrite and remove a template; StoreError if not enrolled."""
        path = self._path(name)
        try:
            sweep(path)
            with alone(path), wiped(path):
                path.unlink()
        except FileNotFoundError:
            raise StoreError(f"{name} is not enrolled") from None
        except OSError as error:
            raise StoreError(f"{name} cannot be removed: {error.strerror}") from None

    def _path(self, name: str) -> Path:
        return spelled_path(self.folder / f"{checked_name(name)}.npz")


def _own_file(path: Path) -> os.stat_result | None:
    """Return the status of a plain file of this user; None for anything else."""
    with suppress(OSError):
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and is_ours(status):
            return status
    return None
