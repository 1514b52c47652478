"""Which adapters may train: those that passed the self-test, once per adapter, driver and set of shaders.

The verdict is kept in the user's cache; `difflogic doctor` tests again and replaces it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from difflogic.devices import selftest
from difflogic.devices.selftest import Check
from difflogic.errors import DeviceError
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.shaders import shader_hash
from difflogic.system.cache import JsonCache, key_of, warn

VERDICTS = JsonCache("selftest")


@dataclass(frozen=True)
class Verdict:
    """How the self-test of an adapter ended; `failures` are `name: detail` of the checks that training needs."""

    adapter: str
    failures: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.failures


def require(adapter: Adapter) -> None:
    """Return where the adapter passed the self-test, which is run where it was not yet.

    Raises DeviceError where it failed, now or when it was last tested.
    """
    verdict = kept(adapter) or _test(adapter)
    if not verdict.passed:
        raise DeviceError(
            f"{adapter.name} failed the self-test and is not trained on, {verdict.failures[0]}: use another engine, "
            "or test it again with difflogic doctor when its driver is mended."
        )


def kept(adapter: Adapter) -> Verdict | None:
    """The verdict of an earlier test with this driver and these shaders."""
    entry = VERDICTS.read().get(_key(adapter))
    failures = None if entry is None else entry.get("failures")
    if not isinstance(failures, list) or not all(isinstance(each, str) for each in failures):
        return None
    return Verdict(adapter.name, tuple(failures))


def keep(adapter: Adapter, checks: Sequence[Check]) -> Verdict:
    """Keep what a self-test found; returns the verdict."""
    failures = [f"{check.name}: {check.detail}" for check in checks if not check.passed]
    if not checks:
        failures = ["self-test: no check was made"]
    VERDICTS.write(_key(adapter), {"adapter": adapter.name, "driver": adapter.driver, "failures": failures})
    return Verdict(adapter.name, tuple(failures))


def _test(adapter: Adapter) -> Verdict:
    warn(f"checking {adapter.name} against the reference, once per driver ...")
    start = time.monotonic()
    verdict = keep(adapter, selftest.self_test(str(adapter.index)))
    seconds = time.monotonic() - start
    warn(f"checked {adapter.name}: {'it can be trusted' if verdict.passed else 'it FAILED'} ({seconds:.0f} s).")
    return verdict


def _key(adapter: Adapter) -> str:
    return key_of(adapter.name, adapter.backend, adapter.driver, shader_hash())
