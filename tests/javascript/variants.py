"""Every WGSL module, and every set of `override` constants that a pipeline of it may be made with.

Nothing is listed here: kernels come from their tables, launch configurations from what the planner tries and the tuner
sweeps, for every preset.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from difflogic.circuits.export import wgsl
from difflogic.config import presets
from difflogic.core.wiring import CANDIDATES
from difflogic.devices import tune
from difflogic.engine.job import make_job
from difflogic.engine.shape import Shape
from difflogic.errors import LimitError
from difflogic.gpu import array_kernels, arrays, planner, simulation
from difflogic.gpu.kernels import KERNELS
from difflogic.gpu.launch import LINEAR_WG, LaunchConfig
from difflogic.gpu.plan import Plan
from difflogic.gpu.recording import DEFAULT_LIMITS, RecordingDevice
from difflogic.gpu.shaders import Binding, Source, load_source, shader_root
from difflogic.gpu.wiring import wired
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout
from tests.export_cases import CASES


@dataclass(frozen=True)
class Variant:
    """A pipeline: a module, its constants, and what it binds; without `bindings`, what its shader declares."""

    module: str
    constants: dict[str, int]
    bindings: tuple[Binding, ...] | None = None

    @property
    def label(self) -> str:
        values = " ".join(f"{name}={value}" for name, value in self.constants.items())
        return f"{self.module} {values}".strip()


def all_sources() -> dict[str, Source]:
    """Every kernel in a table, every other file with an entry point, and what is generated from circuits."""
    kernels = [*KERNELS, *(kernel.source.name for kernel in array_kernels.KERNELS.values())]
    for path in sorted(shader_root().rglob("*.wgsl")):
        name = path.relative_to(shader_root()).with_suffix("").as_posix()
        is_entry = re.search("^@compute", path.read_text(encoding="utf-8"), re.MULTILINE) is not None
        # Kernels import the entry points of common/; what completes BLOCKED is generated.
        if is_entry and name != simulation.BLOCKED and not name.startswith("common/"):
            kernels.append(name)
    return {**{name: load_source(name) for name in dict.fromkeys(kernels)}, **_generated()}


def _generated() -> dict[str, Source]:
    found = {}
    for name, netlist in CASES.items():
        lines = wgsl.shader(netlist, "exported").splitlines()
        origins = tuple((f"exported {name}.wgsl", number) for number in range(1, len(lines) + 1))
        found[f"exported {name}"] = Source(name, "\n".join(lines) + "\n", origins)
        found[f"simulated {name}"] = simulation.generated_source(netlist)
        found[f"blocked {name}"] = simulation.blocked_source(netlist)
    return found


def all_variants(sources: Mapping[str, Source]) -> list[Variant]:
    """Every variant of these modules. AssertionError where a module wants constants that no table gives."""
    plain = {name: source for name, source in sources.items() if "simulat" in name}
    simulated = [Variant(name, {"WG": simulation.WG}, source.bindings) for name, source in plain.items()]
    found = {each.label: each for each in (*of_kernels(), *of_arrays(), *simulated, *of_blocks(sources))}
    known = {each.module for each in found.values()}
    return [*found.values(), *(Variant(name, {}) for name in sources if name not in known)]


def of_blocks(sources: Mapping[str, Source]) -> Iterator[Variant]:
    """Simulations of several generations at once."""
    for name, source in sources.items():
        channels = CASES[name.removeprefix("blocked ")].channels if name.startswith("blocked ") else 0
        if channels and (tile := simulation.Tile.of(channels, 16384)):
            yield Variant(name, tile.constants(channels), source.bindings)


def of_kernels() -> Iterator[Variant]:
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for plan in plans():
        for spec in KERNELS.values():
            constants = spec.constants(plan)
            if (key := (spec.name, tuple(constants.values()))) not in seen:
                seen.add(key)
                yield Variant(spec.name, constants, spec.source.bindings)


def plans() -> Iterator[Plan]:
    """Yield the plans that the planner or the tuner may choose for any preset on a device with default limits."""
    for software, preset in itertools.product((True, False), presets.PRESETS.values()):
        device = RecordingDevice(software)
        config = preset.make()
        plan = planner.plan_for(device, [make_job(config, Circuit.initial(config.model, config.seed))])
        tried = planner._candidates(device.adapter, None, plan)
        tried += [launch for family in tune.families(device, plan) for sweep in family for launch in sweep]
        # A limit on memory may make any of them compute activations again.
        tried += [launch.with_memory(store_activations=False) for launch in tried]
        # Perception may be wired in another way than the paper's, or there may be none.
        plain = replace(plan, wirings=tuple(replace(wiring, trees=False) for wiring in plan.wirings))
        circuit = Circuit.feed_forward([9, 20, 12], seed=0)
        shape = Shape.of(circuit, (2, 1, 40, 9), 1)
        kinds = [plan, plain, replace(plan, wirings=tuple(wired([flat_layout(circuit)])), shape=shape)]
        for candidates in CANDIDATES[1:]:
            layout = flat_layout(circuit.with_candidates(candidates, seed=0))
            kinds.append(replace(kinds[-1], wirings=tuple(wired([layout]))))
        for each, launch in itertools.product(kinds, dict.fromkeys(tried)):
            if _runs(each, launch):
                yield replace(each, launch=launch)


def _runs(plan: Plan, launch: LaunchConfig) -> bool:
    try:
        planner.check(replace(plan, launch=launch), DEFAULT_LIMITS)
    except LimitError:
        return False
    return True


def of_arrays() -> Iterator[Variant]:
    lanes = (1, arrays.SHARERS // arrays.SIDE_BY_SIDE, arrays.SHARERS)
    for kernel in array_kernels.KERNELS.values():
        known = {"WG": (LINEAR_WG,), "LANES": lanes, "OP": tuple(range(len(kernel.ops)))}
        values = [known.get(name, (0, 1)) for name in kernel.source.overrides]
        for chosen in itertools.product(*values):
            constants = dict(zip(kernel.source.overrides, chosen, strict=True))
            yield Variant(kernel.source.name, constants, kernel.source.bindings)
