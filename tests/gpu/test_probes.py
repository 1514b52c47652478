"""An adapter that silently cuts loops short is found out when it is opened, and not used."""

from itertools import islice

import numpy as np
import pytest

from difflogic.circuits.simulation.engines import open_simulation
from difflogic.devices import selftest
from difflogic.devices.open import place
from difflogic.engine.simulation import SimulationSpec
from difflogic.errors import DeviceError
from difflogic.gpu import probes
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.shaders import Source, load_source
from tests.export_cases import life

REFUSAL = r"cannot be used: the driver silently cuts long loops short, as lavapipe does before Mesa 25"


@pytest.fixture
def cutting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shaders as lavapipe before Mesa 25 runs them: an invocation's loops end after 65,535 rounds in all."""

    def cut(kernel: str) -> Source:
        source = load_source(kernel)
        text = source.text.replace("{ total +=", "{ rounds++; if rounds > 65535u { break; } total +=")
        text = text.replace("var total = 0u;", "var total = 0u; var rounds = 0u;")
        return Source(source.name, text, source.origins)

    monkeypatch.setattr(probes, "load_source", cut)
    monkeypatch.setattr(probes, "_OPENED", {})


@pytest.mark.usefixtures("cutting")
def test_an_adapter_that_cuts_loops_short_is_refused(device: GpuDevice) -> None:
    assert not probes.runs_long_loops(device)
    for selector in ("gpu", "gpu:0"):
        with pytest.raises(DeviceError, match=REFUSAL):
            place(selector)
    with pytest.raises(DeviceError, match=REFUSAL):
        open_simulation(SimulationSpec(life(), 8, 8), np.zeros((8, 1, 1), dtype=np.uint64), "gpu")
    _, check, *_ = islice(selftest._checks("0"), 2)
    assert (check.name, check.passed) == ("long loops", False)
    assert check.detail.endswith("install a newer driver, or use --engine cpu")
