"""Self-test of a GPU adapter: compare its results with the reference in a child process.

The test needs a child process because some drivers abort the process instead of raising an error. The child runs
`python -m difflogic.devices.selftest ADAPTER_NAME`, and prints one JSON object per check.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from difflogic.config.model import ModelConfig, NetworkConfig
from difflogic.config.schema import Config
from difflogic.config.task import TaskConfig
from difflogic.config.train import InitialConfig, OptimizerConfig, PoolConfig, TrainConfig
from difflogic.core import text_picture
from difflogic.engine.api import Engine
from difflogic.engine.batch import Batch
from difflogic.engine.job import Job, TrainState, make_job
from difflogic.errors import DeviceError, DifflogicError
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.shaders import shader_hash
from difflogic.model.circuit import ArraysByNetwork, Circuit
from difflogic.system.cache import JsonCache, key_of, warn
from difflogic.system.child import python_command

if TYPE_CHECKING:
    from difflogic.gpu.engine import GpuEngine

VERDICTS = JsonCache("selftest")
TIMEOUT_SECONDS = 180
IMPORTS = "imports"
"""Name of the check that fails if the child process cannot import a package; the result is then not cached."""
STATE_TOLERANCE = 1e-6
"""Maximum error of soft states, whose last bits differ if a driver fuses `a*b + c`."""
GRADIENT_TOLERANCE = 1e-4
"""Maximum error of gradients relative to a layer's largest gradient; rounding errors of many terms add up."""


MODEL = ModelConfig(
    channels=2,
    kernels=3,
    perceive=NetworkConfig((9, 8, 4, 2), ("first_kernel", "unique", "unique")),
    update=NetworkConfig((14, 16, 8, 4, 2), ("unique", "random", "unique", "unique")),
)
"""Model of the test circuit, which contains every kind of layer."""


@dataclass(frozen=True)
class Check:
    """Name and result of one check of the self-test."""

    name: str
    passed: bool
    detail: str


def self_test(adapter: str) -> list[Check]:
    """Run all checks of `adapter` (a name or index) in a child process, and return their results."""
    try:
        # A driver may abort its process, or hang without reacting to signals, so the test needs a child process.
        child = subprocess.run(_command(adapter), capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return [Check("self-test", False, f"no response within {TIMEOUT_SECONDS} seconds: the driver hangs; update it")]
    # The checks that the child printed before it ended are valid, and show which check ended it.
    checks = [Check(**json.loads(line)) for line in child.stdout.splitlines() if line.startswith("{")]
    if child.returncode != 0:
        last = child.stderr.strip().splitlines()[-1:] or ["no message"]
        if last[0].startswith(("ImportError", "ModuleNotFoundError")):
            return [*checks, Check(IMPORTS, False, f"{last[0]}: repair the installation; the driver was not tested")]
        end = f"the process ended with code {child.returncode} ({last[0]})"
        checks.append(Check("self-test", False, f"{end}: update the driver, or use another adapter"))
    return checks


def _command(adapter: str) -> tuple[str, ...]:
    return python_command("-m", "difflogic.devices.selftest", adapter)


def _checks(adapter: str) -> Iterator[Check]:
    """Yield each check of `adapter` as soon as it is done, so that results before a crash are known."""
    from difflogic.gpu import probes
    from difflogic.gpu.adapter import select_adapter
    from difflogic.gpu.device import GpuDevice
    from difflogic.gpu.engine import GpuEngine

    device = GpuDevice(select_adapter(adapter))
    yield Check("device", True, f"{device.adapter.name} opens with portable limits")
    loops = probes.runs_long_loops(device)
    yield Check("long loops", loops, "all 80,000 iterations are executed" if loops else probes.CUTS_LOOPS)
    yield _check("NaN test", probes.sees_not_finite(device), "NaN and infinity are distinguished from numbers")
    yield _check("workgroup memory", probes.keeps_workgroup_memory(device), "16 KiB are read back as written")
    yield from _parity(GpuEngine(device))


def _check(name: str, passed: bool, what: str) -> Check:
    return Check(name, passed, what if passed else f"failed: {what}; update the driver, or use another adapter")


def _parity(engine: GpuEngine) -> Iterator[Check]:
    from difflogic.reference.engine import ReferenceEngine

    reference = ReferenceEngine()
    circuit, x, y = example()
    steps = 4
    batch = Batch(x, y, steps)
    difference = np.abs(engine.rollout(circuit, x, steps) - reference.rollout(circuit, x, steps)).max()
    yield _check(
        "forward", bool(difference <= STATE_TOLERANCE), f"soft states differ by {difference:.1e} from the reference"
    )
    loss, gradients = engine.loss_and_gradients(circuit, batch)
    expected_loss, expected = reference.loss_and_gradients(circuit, batch)
    worst = largest_difference(gradients, expected)
    close = abs(loss - expected_loss) <= 1e-5 * expected_loss and worst <= GRADIENT_TOLERANCE
    yield _check("gradients", bool(close), f"gradients differ by {worst:.1e} times the layer's largest gradient")
    hard = (engine.rollout(circuit, x, steps, "hard") == reference.rollout(circuit, x, steps, "hard")).all()
    yield _check("hard circuit", bool(hard), "hard states are bit-equal to the reference")
    again, gradients_again = engine.loss_and_gradients(circuit, batch)
    same = again == loss and largest_difference(gradients_again, gradients) == 0
    yield _check("determinism", same, "loss and gradients are bit-equal if computed twice")
    wrong = _wrong_in_training(engine, reference)
    yield _check("training", not wrong, wrong or "an epoch with damage, several losses and a pool equals the reference")


def _wrong_in_training(engine: Engine, reference: Engine) -> str:
    """Train an epoch with all features of a task; return its difference from the reference as text, "" if equal."""
    job, left = _job(), []
    for each in (engine, reference):
        model = each.open([job], [TrainState.initial(job)])
        model.train(1)
        ((row,),), (verdict,), (state,) = model.fetch_metrics(), model.evaluate(), model.states()
        left.append((row.soft_loss, verdict, np.asarray(state.pool)))
        model.close()
    # At a learning rate of 0, logits and hard circuits stay the same. So evaluations and the pool do not depend on the
    # rounding of soft sums, and are compared bit by bit.
    (loss, verdict, pool), (expected_loss, expected, expected_pool) = left
    if abs(loss - expected_loss) > 1e-5 * expected_loss:
        return f"the soft loss is {loss:.6g}, expected {expected_loss:.6g}"
    if verdict != expected:
        return f"the hard circuit is evaluated as {verdict}, expected {expected}"
    return "" if np.array_equal(pool, expected_pool) else "the sample pool differs"


def _job() -> Job:
    """Return a job with fire masks, damage, two loss steps, a sample pool and a learning rate of 0."""
    circuit, x, _ = example()
    task = TaskConfig(
        target="picture",
        height=x.shape[1],
        width=x.shape[2],
        steps=4,
        start="picture",
        picture=text_picture.encode(x[0, ..., :1].astype(np.uint8)),
        start_picture=text_picture.encode(x[1].astype(np.uint8)),
        loss_steps=(2, 4),
        damage_side=3,
        damage_steps=(0, 2),
    )
    train = TrainConfig(epochs=1, batch=4, fire_rate=0.6, probes=3)
    still, pool = OptimizerConfig(lr=0.0), PoolConfig(size=8)
    return make_job(Config("self-test", MODEL, task, train, optimizer=still, pool=pool), circuit)


def largest_difference(got: ArraysByNetwork, wanted: ArraysByNetwork) -> float:
    """Return the largest difference between gradients, relative to the largest gradient of the layer in `wanted`."""
    layers = [pair for name in wanted for pair in zip(got[name], wanted[name], strict=True)]
    # NumPy's maximum is NaN if any value is NaN, unlike Python's `max`.
    return float(np.max([np.abs(ours - theirs).max() / np.abs(theirs).max() for ours, theirs in layers]))


def example() -> tuple[Circuit, np.ndarray, np.ndarray]:
    """Return a small circuit with every kind of layer and noisy logits, three initial states of 7x6, and targets."""
    random = np.random.default_rng(0)
    circuit = Circuit.initial(MODEL, seed=0, initial=InitialConfig(logit=2.0))
    # With noise of size 1 on an initial logit of 2, many gates are unconverged. So no coefficient is 0, which could
    # hide a wrong kernel.
    flat = circuit.flat_logits()
    circuit = circuit.with_logits(flat + random.normal(size=flat.shape).astype(np.float32))
    x = random.integers(0, 2, (3, 7, 6, 2)).astype(np.float32)
    return circuit, x, 1 - x


def _print(check: Check) -> None:
    sys.stdout.write(json.dumps(asdict(check)) + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Run the checks in the child process: print one JSON line per check of the adapter `arguments[0]`."""
    try:
        for check in _checks(arguments[0]):
            _print(check)
    except DifflogicError as error:
        _print(Check("device", False, str(error)))
    return 0


def require(adapter: Adapter) -> None:
    """Require that the adapter passes the self-test; run the test if there is no cached result.

    Raises DeviceError if the adapter fails the test, now or in the cached result.
    """
    # The cache key contains driver and shaders, so an update of the driver or the shaders repeats the test.
    failures = kept(adapter)
    if failures is None:
        warn(f"checking {adapter.name} against the reference, once per driver ...")
        start = time.monotonic()
        failures = keep(adapter, self_test(str(adapter.index)))
        seconds = time.monotonic() - start
        verdict = "FAILED" if failures else "passed"
        warn(f"checked {adapter.name}: the self-test {verdict} ({seconds:.0f} s).")
    if failures:
        raise DeviceError(
            f"{adapter.name} failed the self-test and cannot be used, {failures[0]}: use another engine, "
            "or update the driver and run `difflogic doctor`."
        )


def kept(adapter: Adapter) -> list[str] | None:
    """Return the cached failures of a test with the current driver and shaders, or None if there is no cached test."""
    entry = VERDICTS.read().get(_key(adapter))
    # An edited entry, or an entry of another version, is ignored, so the adapter is tested again.
    failures = None if entry is None else entry.get("failures")
    if not isinstance(failures, list) or not all(isinstance(each, str) for each in failures):
        return None
    return failures


def keep(adapter: Adapter, checks: Sequence[Check]) -> list[str]:
    """Cache the failures of a self-test, unless an import failed, and return them as messages."""
    failures = [f"{check.name}: {check.detail}" for check in checks if not check.passed]
    if not checks:
        failures = ["self-test: no check was made"]
    if all(check.name != IMPORTS for check in checks):
        VERDICTS.write(_key(adapter), {"adapter": adapter.name, "driver": adapter.driver, "failures": failures})
    return failures


def _key(adapter: Adapter) -> str:
    return key_of(adapter.name, adapter.backend, adapter.driver, shader_hash())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
