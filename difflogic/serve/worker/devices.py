"""Find the devices that get a worker; `auto` means all hardware GPUs and the processor."""

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
"""Value of `--workers` for no workers: jobs stay queued until the store is served with workers."""
FOLLOW_UPS = "follow-ups"
"""Device name of workers for post-processing, which build, simplify, prove, export and evaluate."""
PATIENCE_S = 20.0
"""Maximum seconds for listing the GPUs."""


def parse(text: str) -> list[str]:
    """Return the devices in `text`, such as `cpu,gpu:0` or `auto`; an empty list for `none`. Raises UsageError."""
    devices = [device.strip() for device in text.split(",")]
    if devices == [NONE]:
        return []
    # Two workers on one device would share the device's memory, and slow each other down.
    if devices != [AUTO] and (not all(map(DEVICE.fullmatch, devices)) or len(set(devices)) < len(devices)):
        raise UsageError(
            f"--workers must be auto, none, or a list such as cpu,gpu:0 with each device once, got {text!r}."
        )
    return devices


def gpus() -> dict[str, str | None]:
    """Return a mapping from `gpu:INDEX` to the name of a software GPU, or None for a hardware GPU. Raises DeviceError.

    A child process lists the GPUs, because their drivers may crash.
    """
    command = python_command("-m", "difflogic.serve.worker.devices")
    try:
        child = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True, stdin=subprocess.DEVNULL)
        return dict(json.loads(child.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise DeviceError(f"Cannot list the GPUs of this machine: {error}.") from error


def usable(devices: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the devices that get a training worker, and a warning (or None) about software or unlisted GPUs.

    `devices` is the result of `parse`, or `["gpu"]` for all hardware GPUs.
    """
    listed: dict[str, str | None] = {}
    warning = None
    if any(device.startswith((AUTO, GPU)) for device in devices):
        try:
            listed = gpus()
        except DeviceError as error:
            warning = str(error)
    if list(devices) in ([AUTO], [GPU]):
        hardware = [gpu for gpu, software in listed.items() if software is None]
        return [*hardware, "cpu"] if list(devices) == [AUTO] else hardware, warning
    named = [device for device in devices if device != FOLLOW_UPS]
    if slow := [f"{device} is {software}" for device in named if (software := listed.get(device))]:
        warning = f"{', '.join(slow)}: a software GPU computes on the processor, and slower than the device cpu."
    return named, warning


def engines_of(device: str, others: Sequence[str] = ()) -> list[str]:
    """Return the engines that the worker of a device offers; `others` are the devices of all workers of the machine.

    If there is a GPU, the processor does not offer `auto`, and takes only the `auto` jobs that `sooner_here` returns.
    """
    if device != "cpu":
        return ["auto", "gpu", device]
    return ["cpu", "reference"] if any(other != "cpu" for other in others) else ["auto", "cpu", "reference"]


def main() -> None:
    """Print the result of `gpus` as JSON, computed in this process."""
    from difflogic.devices.open import gpu_adapters

    json.dump({f"gpu:{gpu.index}": gpu.name if gpu.software else None for gpu in gpu_adapters()}, sys.stdout)


if __name__ == "__main__":
    main()
