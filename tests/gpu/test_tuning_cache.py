"""Cache of tuning results by adapter, driver and work; unusable entries are ignored with a warning."""

import dataclasses

import pytest

from difflogic.gpu import tuning_cache
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.launch import FUSED
from difflogic.gpu.plan import Plan
from difflogic.gpu.planner import plan_for
from tests.jobs import make_job

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture(scope="module")
def plan(device: GpuDevice) -> Plan:
    return plan_for(device, [make_job()])


@pytest.mark.parametrize(
    "launch",
    [
        {"wg": 9},
        {"wg": 9, "lanes": 2},
        {"wg": "8", "lanes": 8},
        {"lanes": 0, "wg": 8},
        {"lanes": True, "wg": True},
        {"lanes": 8, "wg": 8, "keep": 7},
        {"lanes": 1, "wg": 1024},  # sound, but for another device
    ],
)
def test_an_entry_that_is_no_schedule_is_ignored_with_a_sentence(launch, device: GpuDevice, plan: Plan, capsys) -> None:
    entry = {"adapter": device.adapter.name, "schedule": launch, "default_ms": 1, "tuned_ms": 1}
    tuning_cache.TUNING.write(tuning_cache.key_of(device.adapter, plan), entry)
    assert tuning_cache.lookup(device.adapter, device.limits, plan) is None
    assert f"difflogic: The entry of {device.adapter.name} in" in capsys.readouterr().err


def test_results_hold_for_one_adapter_driver_and_shape(device: GpuDevice, plan: Plan) -> None:
    adapter = device.adapter
    others = [
        (dataclasses.replace(adapter, driver="another"), plan),
        (dataclasses.replace(adapter, name="another"), plan),
        (adapter, dataclasses.replace(plan, shape=dataclasses.replace(plan.shape, batch=99))),
        (adapter, dataclasses.replace(plan, probes=99)),
        (adapter, plan_for(device, [make_job(seed) for seed in (1, 2)])),
    ]
    keys = {tuning_cache.key_of(*other) for other in [(adapter, plan), *others]}
    assert len(keys) == 6


@pytest.mark.parametrize(
    "variants",
    [
        None,
        [{}],
        [{"schedule": {"wg": 9, "lanes": 2}, "seconds": {}}],
        [{"schedule": {"wg": 8, "lanes": 2}, "seconds": {"gate_forward": 1.0}}],
        [{"schedule": {"wg": 8, "lanes": 2}, "seconds": dict.fromkeys(FUSED, float("nan"))}],
    ],
)
def test_measurements_that_are_none_are_ignored_with_a_sentence(
    variants: object, device: GpuDevice, plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tuning_cache.key_of(device.adapter, plan)
    tuning_cache.MEASURED.write(key, {"adapter": device.adapter.name, "variants": variants})
    assert not tuning_cache.Measured(device.adapter, plan).seconds
    assert f"difflogic: The entry of {device.adapter.name} in" in capsys.readouterr().err
