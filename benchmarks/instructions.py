"""Count the instructions of a train step's kernels on an AMD GPU, without such a GPU.

    python -m benchmarks.instructions --save
    python -m benchmarks.instructions lizard

The script requires Mesa's Vulkan drivers on Linux (Debian's mesa-vulkan-drivers). It compiles the kernels of a hardware
GPU's plan as `card.py` does, with and without constant sizes and bounds checks, for the driver llvmpipe, which writes
their SPIR-V to files. Mesa's driver RADV compiles these files for an AMD GPU, which need not exist, and reports the
number of instructions, in total and in a turn: one iteration over the gates of a level in a fused step. Instructions in
loops count once, so that the numbers compare kernels but are no times.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.card import VARIANTS
from benchmarks.store import Line, append
from difflogic.bench.machine import stamp
from difflogic.config import presets
from difflogic.engine.job import make_job
from difflogic.gpu.adapter import select_adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.launch import FUSED
from difflogic.gpu.model import GpuModel
from difflogic.gpu.planner import plan_for
from difflogic.gpu.recording import RecordedPipeline, RecordingDevice
from difflogic.gpu.shaders import Sizes, load_source
from difflogic.model.circuit import Circuit

RADV = Path("/usr/share/vulkan/icd.d/radeon_icd.json")
FAMILY = "navi21"
"""Default GPU for which RADV compiles, by RADV's name."""


class Recording(RecordingDevice):
    """Recording device that also stores the sizes of each pipeline."""

    sizes: dict[RecordedPipeline, Sizes]

    def pipeline(self, kernel: str, constants: dict[str, int], sizes: Sizes = ()) -> RecordedPipeline:
        made = super().pipeline(kernel, constants, sizes)
        self.sizes[made] = sizes
        return made


def shaders(preset: str, variant: str, folder: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield, for each pipeline of a hardware GPU's plan, the kernel, its SPIR-V file and the kinds of its bindings.

    The environment variable MESA_SPIRV_DUMP_PATH must be `folder`.
    """
    config = presets.get(preset)
    job = make_job(config, Circuit.initial(config.model, config.seed))
    recording = Recording(software=False)
    recording.sizes = {}
    model = GpuModel(recording, [job], plan_for(recording, [job]))
    dispatches = [*model.workspace.coefficients, *model.train_step, *model.workspace.evaluation]
    device = GpuDevice(select_adapter("llvmpipe"))
    device.bakes_sizes, device.trusts_kernels = VARIANTS[variant]
    for made in dict.fromkeys(dispatch.pipeline for dispatch in dispatches):
        before = set(folder.iterdir())
        device.pipeline(made.kernel, dict(made.constants), recording.sizes[made])
        kinds = "".join("u" if each.access == "uniform" else "s" for each in load_source(made.kernel).bindings)
        (file,) = set(folder.iterdir()) - before
        yield made.kernel, file, kinds


def count(file: Path, kinds: str, family: str) -> tuple[int, int]:
    """Return the numbers of instructions of a shader and of one turn in it, compiled by RADV for a family of GPUs."""
    command = [sys.executable, "-m", "benchmarks.instructions", "--compile", str(file), kinds]
    driver = {"VK_ICD_FILENAMES": str(RADV), "RADV_FORCE_FAMILY": family}
    environment = os.environ | driver | {"RADV_DEBUG": "cs,asm,shaderstats,nocache"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    output = run.stdout + run.stderr
    found = re.findall(r"^Instructions: (\d+)$", output, re.MULTILINE)
    return int(found[-1]), turn(output)


def turn(assembly: str) -> int:
    """Return half of the instructions of the shortest loop with two barriers, which is unrolled to two turns."""
    _, *blocks = re.split(r"^BB(?=\d+:)", assembly, flags=re.MULTILINE)
    places = {block[: block.index(":")]: at for at, block in enumerate(blocks)}
    sizes = []
    for end, block in enumerate(blocks):
        for start in (places[name] for name in re.findall(r"branch\S* BB(\d+)", block)):
            body = "".join(blocks[start : end + 1])
            if start <= end and body.count("s_barrier") == 2:
                sizes.append(len(re.findall(r"^\t[a-z]", body, re.MULTILINE)))
    return min(sizes, default=0) // 2


def measure(preset: str, family: str) -> Iterator[Line]:
    """Yield a line per variant. Raises SystemExit without Mesa's driver for AMD GPUs."""
    if not RADV.exists():
        raise SystemExit(f"Mesa's driver {RADV} is not here: install mesa-vulkan-drivers.")
    here = {"case": f"train/{preset}", "family": family, **stamp()}
    for variant in VARIANTS:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "benchmarks.instructions", preset, "--variant", variant, "--into", folder]
            environment = os.environ | {"MESA_SPIRV_DUMP_PATH": folder, "MESA_SHADER_CACHE_DISABLE": "true"}
            run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            made = [json.loads(line) for line in run.stdout.splitlines()]
            counts = {kernel: count(Path(file), kinds, family) for kernel, file, kinds in made}
        turns = {f"{kernel}, a turn": counts[kernel][1] for kernel in FUSED}
        yield {"contender": variant, "instructions": {name: each for name, (each, _) in counts.items()} | turns, **here}


def _struct(**fields: Any) -> ctypes.Structure:
    """Return a Vulkan structure with these fields, whose values have C types."""
    made = type("Struct", (ctypes.Structure,), {"_fields_": [(name, type(value)) for name, value in fields.items()]})
    found: ctypes.Structure = made(**fields)
    return found


def compile_for_card(file: Path, kinds: str) -> None:
    """Create the compute pipeline of a shader; environment variables make the driver print its statistics."""
    u32, u64, null = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p(None)
    vulkan = ctypes.CDLL("libvulkan.so.1")

    def at(struct: Any) -> ctypes.c_void_p:
        return ctypes.c_void_p(ctypes.addressof(struct))

    def make(name: str, info: Any, out: Any, *before: Any) -> Any:
        if status := getattr(vulkan, name)(*before, ctypes.byref(info), None, ctypes.byref(out)):
            raise SystemExit(f"{name} returned {status}")
        return out

    head = {"next": null, "flags": u32(0)}
    app = _struct(kind=u32(0), next=null, name=null, v=u32(1), engine=null, w=u32(1), api=u32((1 << 22) | (3 << 12)))
    info = _struct(kind=u32(1), **head, app=at(app), layers=u32(0), l=null, extensions=u32(0), e=null)
    instance = make("vkCreateInstance", info, ctypes.c_void_p())
    card, cards = ctypes.c_void_p(), u32(1)
    vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(cards), ctypes.byref(card))
    priority = ctypes.c_float(1)
    queue = _struct(kind=u32(2), **head, family=u32(0), count=u32(1), priorities=at(priority))
    info = _struct(
        kind=u32(3), **head, queues=u32(1), q=at(queue), layers=u32(0), l=null, extensions=u32(0), e=null, features=null
    )
    device = make("vkCreateDevice", info, ctypes.c_void_p(), card)
    code = ctypes.create_string_buffer(data := file.read_bytes(), len(data))
    info = _struct(kind=u32(16), **head, size=ctypes.c_size_t(len(data)), code=at(code))
    module = make("vkCreateShaderModule", info, u64(), device)
    # Constants of Vulkan: 6 is a uniform buffer, 7 a storage buffer, and 32 the compute stage.
    entries = [
        _struct(place=u32(place), kind=u32(6 if kind == "u" else 7), count=u32(1), stage=u32(32), samplers=null)
        for place, kind in enumerate(kinds)
    ]
    packed = ctypes.create_string_buffer(b"".join(map(bytes, entries)))
    info = _struct(kind=u32(32), **head, count=u32(len(kinds)), bindings=at(packed))
    group = make("vkCreateDescriptorSetLayout", info, u64(), device)
    info = _struct(kind=u32(30), **head, count=u32(1), sets=at(group), constants=u32(0), c=null)
    layout = make("vkCreatePipelineLayout", info, u64(), device)
    name = ctypes.create_string_buffer(b"main")
    stage = _struct(kind=u32(18), **head, stage=u32(32), module=module, name=at(name), constants=null)
    info = _struct(kind=u32(29), **head, stage=stage, layout=layout, base=u64(0), index=ctypes.c_int32(-1))
    make("vkCreateComputePipelines", info, u64(), device, u64(0), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", nargs="?", default="checkerboard")
    parser.add_argument("--family", default=FAMILY, help=f"RADV's name of a card [{FAMILY}]")
    parser.add_argument("--save", action="store_true", help="append to results/instructions.jsonl")
    parser.add_argument("--variant", choices=VARIANTS, help=argparse.SUPPRESS)
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--compile", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compile:
        compile_for_card(Path(options.compile[0]), options.compile[1])
    elif options.into:
        for kernel, file, kinds in shaders(options.preset, options.variant, options.into):
            print(json.dumps([kernel, str(file), kinds]))
    else:
        for line in measure(options.preset, options.family):
            print(json.dumps(line))
            if options.save:
                append("instructions", [line])


if __name__ == "__main__":
    main()
