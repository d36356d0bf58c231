"""What noise on frames promises of each speaker: a table in a file, and a few lines for people."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.cli.saying import say
from monitor.phrases import plural
from monitor.protectors.promise import EVERYBODY_BITS, empty_after

if TYPE_CHECKING:
    from monitor.protectors.laplace import Laplace
    from monitor.protectors.promise import Promise

__all__ = ["ACCOUNT", "tell_account", "write_account"]

ACCOUNT = "accounting.csv"
"""The file with what is promised, in the folder that is written."""


def write_account(folder: Path, mechanism: Laplace, spent: Sequence[Promise]) -> None:
    """A line a speaker.

    Args:
        folder: of the frames.
        mechanism: the noise.
        spent: of each speaker.

    Raises:
        StoreError: it cannot be written.
    """
    from monitor.atomic import atomic_write, not_written

    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(
        ["speaker", "frames", "seconds", "epsilon_nats", "clip", "noise_scale", "delta",
         "basic_nats", "advanced_nats", "optimal_nats", "most_evidence_bits"]
    )  # fmt: skip
    for each in spent:
        bounds = (each.spent.basic_nats, each.spent.advanced_nats, each.spent.optimal_nats)
        rows.writerow(
            [each.speaker, each.spent.trials, f"{each.seconds:g}", f"{mechanism.epsilon:g}",
             f"{mechanism.clip:g}", f"{mechanism.scale:.6g}", f"{each.delta:g}",
             *(f"{bound:.6g}" for bound in (*bounds, each.most_bits))]
        )  # fmt: skip
    path = folder / ACCOUNT
    try:
        with atomic_write(path) as file:
            file.write(text.getvalue().encode())
    except OSError as error:
        raise not_written(path, error) from None


def tell_account(folder: Path, mechanism: Laplace, spent: Sequence[Promise], unit: str) -> None:
    """What is promised, and that it is soon nothing.

    Args:
        folder: of the frames.
        mechanism: the noise.
        spent: of each speaker.
        unit: what has the epsilon, such as ``"frame"``.
    """
    most = max(spent, key=lambda each: each.spent.trials)
    bounds = most.spent
    beats = bounds.advanced_nats < bounds.basic_nats
    say(
        f"all {plural(bounds.trials, unit)} of {most.speaker} ({most.seconds:.0f} s of speech) "
        f"together: epsilon {bounds.basic_nats:.4g} by basic composition, "
        f"{bounds.optimal_nats:.4g} by optimal (delta {most.delta:g}); advanced "
        + (f"{bounds.advanced_nats:.4g}" if beats else "is no better than basic")
    )
    empty = sum(each.empty for each in spent)
    limit = plural(empty_after(mechanism.epsilon), unit)
    if empty:
        say(
            f"the promise is empty for {empty} of {plural(len(spent), 'speaker')}: from {limit} on "
            f"it allows {EVERYBODY_BITS:.0f} bits of evidence, which tell one from all others alive"
        )
    else:
        say(f"no attacker has more than {most.most_bits:.3g} bits of evidence; from {limit} on the "
            f"promise would be empty ({EVERYBODY_BITS:.0f} bits)")  # fmt: skip
    say(
        f"{folder / ACCOUNT} has it for each speaker; when there is speech is not protected, and "
        "one more release of the same speech spends as much again"
    )
