"""Which features a monitor listens for where nobody has chosen them."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.errors import StoreError
from monitor.features.registry import ready, superseded
from monitor.population.law import Laws

__all__ = ["choose_features"]


def choose_features(laws: Laws) -> tuple[str, ...]:
    """The largest set of features that there is a law for and that can be computed here.

    Raises:
        StoreError: there is no law.
    """
    sets = [law.features for law in laws]
    if not sets:
        raise StoreError(
            "the population has no rank law; learn one with: "
            "monitor calibrate CORPUS -o POPULATION.npz"
        )

    def worth(names: Sequence[str]) -> tuple[int, ...]:
        weak = [name for name in names if superseded(name, names)]
        return len(names) - len(weak), -len(weak), "voice" not in names

    return max([names for names in sets if all(map(ready, names))] or sets, key=worth)
