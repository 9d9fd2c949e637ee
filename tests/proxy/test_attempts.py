from __future__ import annotations

from proxy.attempts import MOST_ADDRESSES, MOST_WRONG, SECONDS, Attempts
from tests.conftest import StartProxy


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def failing(attempts: Attempts, times: int, address: str = "a") -> None:
    for _ in range(times):
        attempts.failed(address)


def test_an_address_waits_after_too_many_wrong_keys() -> None:
    attempts = Attempts(Clock())
    failing(attempts, MOST_WRONG - 1)
    assert attempts.wait("a") == 0
    failing(attempts, 1)
    assert (attempts.wait("a"), attempts.wait("b")) == (SECONDS, 0)


def test_the_wait_ends() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    failing(attempts, MOST_WRONG)
    clock.now += SECONDS
    assert attempts.wait("a") == 0


def test_no_number_of_addresses_fills_the_memory() -> None:
    attempts = Attempts(Clock())
    failing(attempts, MOST_WRONG, "first")
    for number in range(MOST_ADDRESSES):
        attempts.failed(str(number))
    assert attempts.wait("first") == 0


def test_guessing_the_admin_key_is_a_401_and_soon_a_429_also_for_the_right_one(start_proxy: StartProxy) -> None:
    proxy = start_proxy(server={"admin_key": "right-key"})
    keys = ["wrong"] * (MOST_WRONG + 1) + ["right-key"]
    answers = [proxy.request("GET", "/admin/api/sets", None, {"authorization": f"Bearer {key}"}) for key in keys]
    assert [one.status for one in answers] == [401] * MOST_WRONG + [429] * 2
    assert 0 < int(answers[-1].headers["retry-after"]) <= SECONDS


def test_a_request_without_a_key_is_no_guess(start_proxy: StartProxy) -> None:
    proxy = start_proxy(server={"admin_key": "right-key"})
    assert {proxy.request("GET", "/admin/api/sets").status for _ in range(MOST_WRONG + 2)} == {401}
