"""Which devices get a worker: `auto` is each hardware GPU and the processor."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence

from difflogic.errors import DeviceError, UsageError
from difflogic.system.child import python_command

DEVICE = re.compile(r"cpu|gpu:[0-9]{1,3}|follow-ups")
AUTO = "auto"
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


def hardware_gpus() -> list[str]:
    """`gpu:INDEX` of each hardware GPU; a child process looks, for drivers crash and their libraries are large.

    Raises DeviceError where it finds no answer.
    """
    command = python_command("-m", "difflogic.serve.worker.devices")
    try:
        found = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True, stdin=subprocess.DEVNULL)
        return [f"gpu:{int(index)}" for index in json.loads(found.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise DeviceError(f"The GPUs of this machine cannot be listed: {error}.") from error


def of_this_machine(devices: Sequence[str]) -> list[str]:
    """The devices that are meant, as `parse` gives them. Raises DeviceError where `auto` finds no answer."""
    named = [*hardware_gpus(), "cpu"] if list(devices) == [AUTO] else devices
    return [each for each in named if each != FOLLOW_UPS]


def usable(devices: Sequence[str]) -> tuple[list[str], str | None]:
    """The devices of this machine that are meant; where it cannot list its GPUs the processor, and why."""
    try:
        return of_this_machine(devices), None
    except DeviceError as error:
        return ["cpu"], str(error)


def engines_of(device: str, others: Sequence[str] = ()) -> list[str]:
    """The engines that jobs of a device's worker may have asked for. Beside a GPU the processor takes no `auto`."""
    if device != "cpu":
        return ["auto", "gpu", device]
    # An example: workers on cpu and gpu:0. A job for `auto` waits for the GPU, even while the processor is free; one
    # for `cpu` goes to the processor.
    return ["cpu", "reference"] if any(other != "cpu" for other in others) else ["auto", "cpu", "reference"]


def main() -> None:
    """Print the indices of the hardware GPUs, as JSON."""
    from difflogic.devices.open import hardware_gpus as indices

    json.dump(indices(), sys.stdout)


if __name__ == "__main__":
    main()
