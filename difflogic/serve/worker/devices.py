"""Which devices get a worker: `auto` is each hardware GPU and the processor."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence

from difflogic.errors import DeviceError, UsageError
from difflogic.system.child import python_command

DEVICE = re.compile(r"cpu|gpu:[0-9]{1,3}|follow-ups")
AUTO = "auto"
GPU = "gpu"
NONE = "none"
"""No workers: jobs wait until the store is served with some."""
FOLLOW_UPS = "follow-ups"
"""What a worker without a device is for: simplify, prove, export, evaluate."""
PATIENCE_S = 20.0


def parse(text: str) -> list[str]:
    """`auto`, or devices such as `cpu,gpu:0`; an empty list for `none`. Raises UsageError."""
    devices = [each.strip() for each in text.split(",")]
    if devices == [AUTO]:
        return devices
    if devices == [NONE]:
        return []
    # Two workers on one device would share its memory, and slow each other down.
    wrong = [each for each in devices if not DEVICE.fullmatch(each)]
    if wrong or len(set(devices)) < len(devices):
        raise UsageError(
            f"--workers must be auto, none, or a list such as cpu,gpu:0 with each device once, got {text!r}."
        )
    return devices


def gpus() -> dict[str, str | None]:
    """Return `gpu:INDEX` of each GPU, with the name of a software one; a child process looks, because drivers crash.

    Raises DeviceError if it finds no answer.
    """
    command = python_command("-m", "difflogic.serve.worker.devices")
    try:
        found = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True, stdin=subprocess.DEVNULL)
        return dict(json.loads(found.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise DeviceError(f"The GPUs of this machine cannot be listed: {error}.") from error


def usable(devices: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the devices of this machine that are meant, and a warning: no list of GPUs, or a GPU that is software.

    `devices` are as `parse` gives them; `gpu` alone means the hardware GPUs.
    """
    found: dict[str, str | None] = {}
    warning = None
    if any(each.startswith((AUTO, GPU)) for each in devices):
        try:
            found = gpus()
        except DeviceError as error:
            warning = str(error)
    if list(devices) in ([AUTO], [GPU]):
        hardware = [gpu for gpu, software in found.items() if software is None]
        return [*hardware, "cpu"] if list(devices) == [AUTO] else hardware, warning
    named = [each for each in devices if each != FOLLOW_UPS]
    if slow := [f"{each} is {software}" for each in named if (software := found.get(each))]:
        warning = f"{', '.join(slow)}: a software GPU computes on the processor, and slower than the device cpu."
    return named, warning


def engines_of(device: str, others: Sequence[str] = ()) -> list[str]:
    """Return the engines that jobs of a device's worker may have asked for.

    Next to a GPU the processor does not offer `auto`, but takes the jobs that it finishes sooner: see `store.spare`.
    """
    if device != "cpu":
        return ["auto", "gpu", device]
    return ["cpu", "reference"] if any(other != "cpu" for other in others) else ["auto", "cpu", "reference"]


def main() -> None:
    """Print what `gpus` returns, as JSON."""
    from difflogic.devices.open import gpu_adapters

    json.dump({f"gpu:{each.index}": each.name if each.software else None for each in gpu_adapters()}, sys.stdout)


if __name__ == "__main__":
    main()
