"""Fine-tuning of the voice network on other people's speech, for a stronger attacker."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.util import find_spec

import numpy as np

from monitor.corpus import Recording
from monitor.errors import CorpusError, UsageError
from monitor.jobs import Jobs, threads_here
from monitor.lab.adapting.training import Protect, ProtectedSpeech, TrainingPlan, draw_speech
from monitor.lab.result_cache import ResultCache, result_key
from monitor.networks.layers import weights_of
from monitor.networks.voice import VoiceNetwork, shipped
from monitor.sources.base import file_hash
from monitor.types import FloatArray

# A network is not a template, but it was trained on people's voices, so its files are private.

_VERSION = 2  # of cached results: raise it when training, features or anonymisers change
_FEWEST_VOICES = 2
_PROBLEMS = "problems"


def check_torch() -> None:
    """Check that a network can be trained here."""
    if find_spec("torch") is None:
        raise UsageError(
            "the semi-informed attacker needs torch to train a network: "
            "pip install 'speaker-disclosure-monitor[training]'"
        )


def adapt(
    corpora: Sequence[Sequence[Recording]],
    protect: Protect,
    method: object,
    cache: ResultCache,
    plan: TrainingPlan,
    *,
    progress: Callable[[str, float], None] = lambda _activity, _done: None,
    jobs: Jobs = 1,
) -> tuple[VoiceNetwork, tuple[str, ...]]:
    """Fine-tune the shipped voice network on protected speech of some speakers.

    The cache stores unfinished and finished networks, so that an interrupted training resumes and a
    finished one is only read. It also stores the shipped network's embeddings of clear speech, for
    other methods. The key of a result depends on ``method``, ``corpora`` and ``plan``. ``progress``
    is called with the name of each activity and the fraction done. Returns the network, marked by
    its sha256, and one line for each unusable file. Raises CorpusError if fewer than two speakers
    are usable.
    """
    inputs = {
        "files": [[[r.speaker, file_hash(r.path)] for r in corpus] for corpus in corpora],
        "method": method,
        "plan": asdict(plan),
        "begins": shipped().sha256,
        "version": _VERSION,
    }
    key = result_key(inputs)
    content = cache.read(key)
    if content is None:
        check_torch()
        from monitor.lab.adapting.fine_tuning import Checkpoint, fine_tune

        speakers = sum(len({recording.speaker for recording in corpus}) for corpus in corpora)
        finished = itertools.count(1)
        speech = draw_speech(
            corpora,
            protect,
            plan.draws,
            progress=lambda _: progress("protecting", next(finished) / speakers),
            jobs=jobs,
        )
        if len(speech.names) < _FEWEST_VOICES:
            raise CorpusError(
                "fewer than two background speakers have enough speech to train a network"
            )
        unfinished = result_key({"unfinished": key})
        weights = fine_tune(
            speech,
            shipped().weights,
            plan.length,
            plan.fine_tuning,
            teacher=_embed_teacher(speech, cache),
            checkpoint=Checkpoint(cache, unfinished),
            progress=lambda done, _: progress("training", done),
            threads=threads_here(jobs),
        )
        file = io.BytesIO()
        arrays = {**weights, _PROBLEMS: np.array(json.dumps(speech.problems))}
        np.savez(file, **arrays)  # type: ignore[arg-type]
        content = file.getvalue()
        cache.write(key, content)
        cache.forget(unfinished)
    loaded, digest = weights_of(content)
    problems = json.loads(loaded.pop(_PROBLEMS).item())
    return VoiceNetwork(loaded, digest), tuple(problems)


def _embed_teacher(speech: ProtectedSpeech, cache: ResultCache) -> FloatArray:
    """Embed the clear speech with the shipped network; the result is the same for every method."""
    from monitor.lab.adapting.fine_tuning import embed_clear

    digest = hashlib.sha256()
    for array in (*speech.clear, speech.voices, speech.corpora):
        digest.update(repr(array.shape).encode())
        digest.update(array.tobytes())
    inputs = {"clear": digest.hexdigest(), "network": shipped().sha256, "version": _VERSION}
    key = result_key(inputs)
    content = cache.read(key)
    if content is not None:
        return np.asarray(np.load(io.BytesIO(content), allow_pickle=False))
    embeddings, file = embed_clear(speech, shipped().weights), io.BytesIO()
    np.save(file, embeddings)
    cache.write(key, file.getvalue())
    return embeddings
