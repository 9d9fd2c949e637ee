"""What a request is given: its trajectory, its arm, and with them the body that is sent.

A request that cannot be changed gets none of it, decided before an arm is drawn. What fails here leaves the request as
it came. It sends nothing and records nothing.
"""

from __future__ import annotations

from msgspec.structs import replace

from proxy import injection
from proxy.bookkeeping import Bookkeeper
from proxy.bypass import Bypass
from proxy.calls import Call, Given, off_loop
from proxy.deployments import Block, Deployments
from proxy.errors import ProxyError, from_tfgrpo
from proxy.injection import Spot
from proxy.linking import Evidence, Linker
from proxy.transcript import Transcript
from tfgrpo import experiment
from tfgrpo.dialects import Dialect
from tfgrpo.errors import StoreError
from tfgrpo.types import EMPTY_VERSION


class Placing:
    """Places requests and injects what they get; while `bypass` is on, neither. `secret` keys what is sampled."""

    def __init__(
        self, deployments: Deployments, linker: Linker, books: Bookkeeper, *, bypass: Bypass, secret: bytes
    ) -> None:
        self._deployments = deployments
        self._linker = linker
        self._books = books
        self._bypass = bypass
        self._secret = secret

    @property
    def bypassed(self) -> bool:
        """Whether requests are relayed, and nothing else."""
        return self._bypass.on

    def nothing(self, call: Call) -> Given:
        """Return what a request gets that never came whole, or was not placed yet."""
        if self._bypass.on:
            return Given(bypassed=True)
        return self._kept(call, Given())

    async def give(self, call: Call, transcript: Transcript) -> Given:
        """Return what a request gets.

        Raises:
            ProxyError: 404, it asks for a version that does not exist; 503, whether it exists cannot be found out.
        """
        if self._bypass.on:
            return _aliased(call, Given(body=call.body, bypassed=True))
        if call.dialect is None or call.body is None:
            return self._kept(call, _aliased(call, Given(body=call.body)))
        await self._check_pin(call)
        try:
            given = await self._placed(call, call.dialect, call.body, transcript)
        except Exception:  # noqa: BLE001 - the edge: nothing of ours may fail a live request
            self._books.fault("a request could not be placed")
            transcript.notes.append("not injected: the proxy failed")
            given = Given(body=call.body, arm="unknown")
        return self._kept(call, _aliased(call, given))

    def _kept(self, call: Call, given: Given) -> Given:
        """Say how much of it is recorded: of a trajectory that is not sampled all but the bodies.

        Pinned requests are not sampled: a training run reads what it made.
        """
        route = call.route
        if route.record != "full" or route.record_share >= 1 or isinstance(route.pin, int):
            return given if route.record == "full" else replace(given, record=route.record)
        name = given.placement.assignment.trajectory if given.placement is not None else call.id
        drawn = experiment.sampled(self._secret, call.identity.app, name, route.record_share)
        return replace(given, record="full" if drawn else "metadata", record_share=route.record_share)

    async def _check_pin(self, call: Call) -> None:
        name, pin = call.route.set_name, call.route.pin
        if name is None or not isinstance(pin, int):
            return
        try:
            found = await self._deployments.find_block(name, pin)
        except StoreError as error:
            raise from_tfgrpo(error) from error
        if found is None:
            raise ProxyError(404, f"there is no version {pin} of {name!r}", code="version_not_found")

    async def _placed(self, call: Call, dialect: Dialect, body: bytes, transcript: Transcript) -> Given:
        route = call.route
        off = route.record == "off"
        spot: Spot | str | None = None
        if route.set_name is not None:
            spot = await off_loop(len(body), injection.find, body, dialect.name, transcript.request_encoding)
        if isinstance(spot, str):
            transcript.notes.append(f"not injected: {spot}")
        evidence = Evidence(
            app=call.identity.app,
            set_name=route.set_name,
            request=call.request,
            body=body,
            group=route.group,
            # What is not recorded is found again by nothing: under a name it would be drawn, and count nowhere.
            trajectory=None if off else route.trajectory,
            session=None if off else route.session,
            retry=route.retry,
            pin=route.pin,
            injectable=not isinstance(spot, str),
        )
        given = await self._given(evidence, call, dialect)
        if route.set_name is None or spot is None or isinstance(spot, str):
            return given
        known = await self._block(route.set_name, given.version)
        if known is None:
            transcript.notes.append(f"not injected: the store did not give version {given.version}")
            return replace(given, arm="unknown", version=EMPTY_VERSION)
        block = known.text(route.set_name, given.version, self._chosen(given, call, route.set_name))
        changed = await off_loop(len(body), spot.inject, block)
        return replace(given, body=changed, injected=f"{route.set_name}@{given.version}" if block else "none")

    async def _given(self, evidence: Evidence, call: Call, dialect: Dialect) -> Given:
        """Return the arm and the version of a request, with its place where it is a recorded turn of a trajectory."""
        if dialect.turn and call.route.record != "off":
            placement = await self._linker.place(evidence, call.id)
            return Given(evidence, placement, call.body, "none", placement.arm, placement.version)
        treatment = await self._linker.look(evidence)
        return Given(None, None, call.body, "none", treatment.arm, treatment.version)

    def _chosen(self, given: Given, call: Call, set_name: str) -> str | None:
        """The entries that a request gets: its trajectory's, as long as it has the version they were chosen from."""
        if given.placement is not None and given.placement.assignment.version == given.version:
            return given.placement.assignment.chosen
        return self._deployments.choose(set_name, given.version, call.request)

    async def _block(self, set_name: str, version: int) -> Block | None:
        known = self._deployments.block(set_name, version)
        if known is not None:
            return known
        try:
            return await self._deployments.find_block(set_name, version)
        except StoreError:
            return None


def _aliased(call: Call, given: Given) -> Given:
    """Put the model's other name into the body, where an alias says so."""
    if call.route.model is None or given.body is None:
        return given
    changed = injection.replace_model(given.body, call.route.model)
    return given if changed is None else replace(given, body=changed)
