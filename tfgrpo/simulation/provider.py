"""One request body to one answer, in process: checks it, draws the luck, asks the policy or the optimizer.

The luck of an answer depends on the seed, on the SHA-256 of the request, and for the policy on how often that very
request was seen before, so that repeated samples differ. It does not depend on order, time, or other requests. The
optimizer does not count: it is a function of the request, so that a run that is resumed ends as it would have. The
request is hashed in a canonical form (members sorted) without `stream` and `stream_options`: how an answer is sent
does not change what it says. A `seed` in the request is part of it like any other member, and needs no more.

It knows nothing of HTTP. The counts (some 100 bytes for each different policy request) live as long as the provider.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import re
import secrets
from collections import Counter
from dataclasses import dataclass

from tfgrpo.simulation import optimizer, policy
from tfgrpo.simulation.dials import Dials
from tfgrpo.simulation.request import Refused, Request, read_request
from tfgrpo.simulation.world import World

POLICY, OPTIMIZER = "sim-policy", "sim-optimizer"
MODELS = (POLICY, OPTIMIZER)

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer to one request: a text and a finish reason for each choice, and the tokens (words) it took."""

    id: str
    model: str
    texts: tuple[str, ...]
    finish_reasons: tuple[str, ...]
    prompt_tokens: int
    completion_tokens: int
    stream: bool
    include_usage: bool


class Provider:
    """The simulated provider of one seed: a world with its policy, and an optimizer that does not know it.

    `world` may be given instead, to run a changed one (`World.flipped`) under the same luck.
    """

    def __init__(self, seed: int, dials: Dials | None = None, *, world: World | None = None) -> None:
        self.seed = seed
        self.dials = dials or Dials()
        self.world = world or World.draw(seed, self.dials)
        self._seen: Counter[bytes] = Counter()
        self._run = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    def answer(self, body: bytes) -> Completion:
        """The completion of a chat request as it stands in an HTTP body.

        Raises:
            Refused: the body is no chat request, or names another model.
        """
        request = read_request(body)
        if request.model not in MODELS:
            raise Refused.unknown_model(request.model, MODELS)
        digest = hashlib.sha256(request.canonical).digest()
        drawn = [self._limited(self._text(request, digest, choice), request.max_tokens) for choice in range(request.n)]
        if request.model == POLICY:
            self._seen[digest] += 1
        return Completion(
            f"chatcmpl-sim-{self._run}-{next(self._numbers):08d}",
            request.model,
            tuple(text for text, _ in drawn),
            tuple(reason for _, reason in drawn),
            sum(_words(message.text) for message in request.messages),
            sum(_words(text) for text, _ in drawn),
            request.stream,
            request.include_usage,
        )

    def _text(self, request: Request, digest: bytes, choice: int) -> str:
        if request.model == OPTIMIZER:
            return optimizer.answer(request.messages, self._luck(digest, 0, choice), self.dials)
        return policy.answer(self.world, request.messages, self._luck(digest, self._seen[digest], choice))

    def _luck(self, digest: bytes, times: int, choice: int) -> random.Random:
        drawn = hashlib.sha256(b"%d %d %d " % (self.seed, times, choice) + digest).digest()
        return random.Random(int.from_bytes(drawn[:8]))  # noqa: S311 - a simulation, not a secret

    @staticmethod
    def _limited(text: str, limit: int | None) -> tuple[str, str]:
        if limit is None or _words(text) <= limit:
            return text, "stop"
        ends = itertools.islice((word.end() for word in _WORD.finditer(text)), limit - 1, None)
        return text[: next(ends)], "length"


def _words(text: str) -> int:
    return len(text.split())
