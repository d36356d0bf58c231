"""Front end of a monitor: the features of its audio and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from monitor.errors import Argument, Message, UsageError
from monitor.features.registry import (
    AS_ENVIRONMENT,
    FeatureSetup,
    get_change_sensitivity,
    make,
    takes,
)
from monitor.jobs import one_thread
from monitor.kinds import FeatureSpec, Sensitivity, unlike_networks
from monitor.population.population import Population
from monitor.protocols import Feature, Source, WindowFeature
from monitor.types import AnyArray, FloatArray, Track


class FrontEnd:
    """Features of a monitor; those of audio are created at first use.

    A feature, or a source of ready-made frames, is refused (UsageError) unless its frames are of
    the same kind, size and network as the templates'. ``custom`` are objects to use instead of the
    program's; give a `FeatureSpec` for one with ready-made frames.
    """

    def __init__(
        self,
        population: Population,
        names: Sequence[str],
        custom: Iterable[Feature | FeatureSpec] = (),
        setup: FeatureSetup = AS_ENVIRONMENT,
    ) -> None:
        self.population, self._names, self.setup = population, tuple(names), setup
        self._made: dict[str, Feature] = {}
        self._own: set[str] = set()
        self._stated: set[str] = set()  # features with ready-made frames from every source
        for feature in custom:
            if isinstance(feature, FeatureSpec):
                self._compare("this feature", feature)
                self._stated.add(feature.name)
                self._own.add(feature.name)
            else:
                self.use([feature])
        self.reset()

    def reset(self) -> None:
        """Expect ready-made frames only of the features that have them from every source."""
        self._ready_made = set(self._stated)

    @property
    def by_name(self) -> bool:
        """True if another process can compute the same from names and setup alone."""
        return not self._own

    def use(self, features: Iterable[Feature]) -> None:
        """Compute these features with the given objects, before the first block."""
        for feature in features:
            name = feature.spec.name
            if name not in self._names:
                raise UsageError(f"{name} is not in use, only {', '.join(self._names)}")
            self._compare("this feature", feature.spec)
            self._made[name] = feature
            self._own.add(name)

    def check(self, source: Source) -> None:
        """Refuse ready-made frames other than those of the templates."""
        stream_info = source.stream_info
        self.reset()
        for name in self._names:
            if name in stream_info.tracks:
                self._compare(source.label, stream_info.tracks[name])
                self._ready_made.add(name)
            elif self.takes(name) == "words" and name not in self._ready_made:
                if not stream_info.words:
                    advice = Argument(
                        "words", python="put them beside it (sources.SideInputSource)"
                    )
                    text = f"{name} needs timed words, and {source.label} has none: "
                    raise UsageError(Message(text, advice))
            elif not stream_info.audio or name in self._ready_made:
                others = f", only of {', '.join(stream_info.tracks)}" if stream_info.tracks else ""
                text = f"{source.label} has no frames of {name}{others}; choose others ("
                raise UsageError(Message(text, Argument("features"), ")"))

    def make(self) -> list[Feature]:
        """Return the features of audio; their networks are loaded once."""
        return self._create_features("audio")

    @property
    def audio_features(self) -> tuple[str, ...]:
        """Names of the features of audio."""
        return self._list_computed("audio")

    def word_features(self) -> list[Feature]:
        """Return the features of timed words; created once."""
        return self._create_features("words")

    def get_expected_specs(self, tracks: Mapping[str, Track]) -> dict[str, FeatureSpec]:
        """Return the specs of announced ready-made frames beside the clock."""
        for name in tracks:
            if name in self._names and name not in self._ready_made:
                raise UsageError(
                    f"{name} is extracted from this stream's {self.takes(name)}, but its frames "
                    "are also given: leave them out, or name its FeatureSpec among the features"
                )
        return {
            name: self.population.features[name].spec for name in self._ready_made & tracks.keys()
        }

    def _list_computed(self, what: str) -> tuple[str, ...]:
        """List the features that are computed here, of audio or of words."""
        return tuple(n for n in self._names if n not in self._ready_made and self.takes(n) == what)

    def _create_features(self, what: str) -> list[Feature]:
        return [self._create(name) for name in self._list_computed(what)]

    def _create(self, name: str) -> Feature:
        if name not in self._made:
            (feature,) = make([name], self.setup)
            self._compare_networks("this program", feature.spec)
            self._made[name] = feature
        return self._made[name]

    def embed_part(self, name: str, speech: FloatArray) -> AnyArray:
        """Embed part of a window of speech, like `WindowFeature.embed_part`."""
        feature = self._create(name)
        assert isinstance(feature, WindowFeature)  # only these keep their speech
        with one_thread():
            return feature.embed_part(speech)

    def takes(self, name: str) -> str:
        """Return what a feature is made of: ``"audio"`` or ``"words"``."""
        feature = self._made.get(name)
        return takes(name) if feature is None else feature.spec.takes

    def get_change_sensitivities(self) -> dict[str, Sensitivity]:
        """Return each feature's sensitivity to changes; others are not followed."""
        features = self._made
        stated = {
            n: features[n].follow if n in features else get_change_sensitivity(n)
            for n in self._names
        }
        return {
            name: sensitivity for name, sensitivity in stated.items() if sensitivity is not None
        }

    def _compare(self, label: str, spec: FeatureSpec) -> None:
        enrolled = self.population.features[spec.name].spec
        if spec.kind is not enrolled.kind or not enrolled.kind.is_compatible(
            spec.size, enrolled.size
        ):
            raise UsageError(
                f"{label}: {spec.name} is {spec} here, but {enrolled} in the population. Make "
                "both with the same program"
            )
        self._compare_networks(label, spec)

    def _compare_networks(self, label: str, spec: FeatureSpec) -> None:
        enrolled = self.population.features[spec.name].spec.network
        if spec.network != enrolled and spec.takes == "words":
            raise UsageError(
                f"{spec.name} has different word lists in the population and in {label}. Set the "
                "one used at enrolment (MONITOR_WORD_LIST=FILE), or enrol again"
            )
        if spec.network != enrolled:
            what = unlike_networks(spec.name, label, spec.network, "the population", enrolled)
            advice = "enrol and calibrate again with this version (monitor enrol), or leave"
            text = f"{what}; {advice} {spec.name} out ("
            raise UsageError(Message(text, Argument("features"), ")"))
