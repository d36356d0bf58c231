"""The front end of a monitor: what makes frames of its features, compared with the templates'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from monitor.errors import UsageError
from monitor.features.registry import followed, make, takes
from monitor.kinds import FeatureSpec
from monitor.kinds.following import Sensitivity
from monitor.network_marks import unlike_networks
from monitor.population.population import Population
from monitor.protocols import Feature, Source
from monitor.types import Track

__all__ = ["FrontEnd"]


class FrontEnd:
    """The features that a monitor listens for; those of audio are made when they are needed.

    A feature, or a source of ready-made frames, is refused unless it makes the same frames as the
    templates were made of: of the same kind and size, by the same network.

    Args:
        population: the templates.
        names: of the features.
        own: objects to use instead of the program's own, for some of them; a `FeatureSpec` for one
            whose frames come ready-made beside audio.

    Raises:
        UsageError: one of them does not fit the population.
    """

    def __init__(
        self,
        population: Population,
        names: Sequence[str],
        own: Iterable[Feature | FeatureSpec] = (),
    ) -> None:
        self._population, self._names = population, tuple(names)
        self._made: dict[str, Feature] = {}
        self._own: set[str] = set()
        self._stated: set[str] = set()  # they come ready-made, whatever the source
        for each in own:
            if isinstance(each, FeatureSpec):
                self._compare("this feature", each)
                self._stated.add(each.name)
                self._own.add(each.name)
            else:
                self.use([each])
        self.reset()

    def reset(self) -> None:
        """Expect of the next source only what every source was said to bring."""
        self._given = set(self._stated)  # they come ready-made

    @property
    def by_name(self) -> bool:
        """Whether another process, knowing the names alone, would compute the same."""
        return not self._own

    def use(self, features: Iterable[Feature]) -> None:
        """Compute these features with objects of one's own, before anything was heard.

        Raises:
            UsageError: one of them is not of the kind or size that the population has.
        """
        for feature in features:
            name = feature.spec.name
            if name not in self._names:
                raise UsageError(f"{name} is not listened for, only {', '.join(self._names)}")
            self._compare("this feature", feature.spec)
            self._made[name] = feature
            self._own.add(name)

    def check(self, source: Source) -> None:
        """See to it that ready-made frames are those that the templates were made of.

        Raises:
            UsageError: they are not.
        """
        brings = source.brings
        self.reset()
        for name in self._names:
            if name in brings.tracks:
                self._compare(source.label, brings.tracks[name])
                self._given.add(name)
            elif self._takes(name) == "words" and name not in self._given:
                if not brings.words:
                    raise UsageError(
                        f"{name} is made of timed words, and {source.label} brings none: put them "
                        "beside it (sources.Beside)"
                    )
            elif not brings.audio or name in self._given:
                there = f", only of {', '.join(brings.tracks)}" if brings.tracks else ""
                raise UsageError(
                    f"{source.label} holds no frames of {name}{there}; choose others (features=)"
                )

    def make(self) -> list[Feature]:
        """The features that hear audio; made, and their networks loaded, once.

        Raises:
            UsageError: one is of another network than the templates, or cannot be computed here.
            StoreError: a network is out of reach.
        """
        return self._those_that_take("audio")

    @property
    def by_ear(self) -> tuple[str, ...]:
        """Names of those that hear audio."""
        return tuple(n for n in self._names if n not in self._given and self._takes(n) == "audio")

    def of_words(self) -> list[Feature]:
        """The features that are made of timed words; made once."""
        return self._those_that_take("words")

    def expected(self, tracks: Mapping[str, Track]) -> dict[str, FeatureSpec]:
        """What ready-made frames beside the clock must look like.

        Raises:
            UsageError: nobody said that they would come, and they are made here.
        """
        for name in tracks:
            if name in self._names and name not in self._given:
                raise UsageError(
                    f"{name} is made of this stream's {self._takes(name)}, and comes ready-made as "
                    "well: leave its frames out, or name its FeatureSpec among the features"
                )
        return {name: self._population.features[name].spec for name in self._given & tracks.keys()}

    def _those_that_take(self, what: str) -> list[Feature]:
        names = [n for n in self._names if n not in self._given and self._takes(n) == what]
        for name in names:
            if name not in self._made:
                (made,) = make([name])
                self._compare_networks("this program", made.spec)
                self._made[name] = made
        return [self._made[name] for name in names]

    def _takes(self, name: str) -> str:
        made = self._made.get(name)
        return takes(name) if made is None else made.spec.takes

    def followed(self) -> dict[str, Sensitivity]:
        """How each feature says that it is followed for changes; others are not followed."""
        made = self._made
        stated = {n: made[n].follow if n in made else followed(n) for n in self._names}
        return {name: how for name, how in stated.items() if how is not None}

    def _compare(self, label: str, spec: FeatureSpec) -> None:
        own = self._population.features[spec.name].spec
        if spec.kind is not own.kind or not own.kind.fits(spec.size, own.size):
            raise UsageError(
                f"{label}: {spec.name} comes as {spec}, the population has it "
                f"as {own}; make both with the same program"
            )
        self._compare_networks(label, spec)

    def _compare_networks(self, label: str, spec: FeatureSpec) -> None:
        enrolled = self._population.features[spec.name].spec.network
        if spec.network != enrolled and spec.takes == "words":
            raise UsageError(
                f"{spec.name} of the population was counted by another list of words than that of "
                f"{label}: give the one that it was made with (--word-list FILE), or enrol again"
            )
        if spec.network != enrolled:
            what = unlike_networks(spec.name, label, spec.network, "the population", enrolled)
            raise UsageError(
                f"{what}; enrol and calibrate again with this version (monitor enroll), or leave "
                f"{spec.name} out (features=)"
            )
