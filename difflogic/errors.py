"""Errors that difflogic raises on purpose.

    DifflogicError                  exit code 1
    +-- UsageError                  exit code 2: the request itself is wrong
    |   +-- NotFoundError           a run, checkpoint, sweep or store that does not exist
    |   +-- ConfigError             a configuration field, preset or TOML file
    |   +-- CircuitError            logits, wires or their shapes
    |   +-- DataError               initial states, targets or masks for an engine
    |   +-- DeviceMismatchError     operands on two devices
    |   +-- ShapeError              operands of tensors, with shapes that do not fit
    +-- DeviceError                 a device that cannot carry out the request
    |   +-- NoAdapterError          no adapter, or no adapter of this name
    |   +-- LimitError              the device lacks memory, or another of its limits is too low
    |   +-- KernelError             a WGSL file did not compile
    +-- ToolError               another program is missing or fails
    +-- MissingPackagesError        an extra that is not installed
    +-- ExportError                 an exported file that differs from its circuit
    +-- CheckpointError             a checkpoint that is corrupt, or of another version
    +-- RunFolderError              a run folder that is occupied, locked or unwritable
    +-- FaultyTaskError             a task in Python that raises, or returns unusable values
    +-- FaultyEnvironmentError      an environment that raises, or returns unusable values
    +-- ServiceError                a server of the training service that refuses a request, or cannot be reached
    +-- StoreError                  the training service's store, its jobs and leases

Each message says what was expected, what was received, and what to do. The command line prints it as one sentence
without a traceback.
"""

from __future__ import annotations


class DifflogicError(Exception):
    """Base class of all errors that difflogic raises on purpose; `exit_code` is the exit code of a command."""

    exit_code = 1


class UsageError(DifflogicError):
    """The request is wrong, and must be changed before it can be carried out."""

    exit_code = 2


class NotFoundError(UsageError):
    """A run, a checkpoint, a sweep or a store does not exist."""


class ConfigError(UsageError):
    """A configuration value, preset name or TOML file is not usable."""


class CircuitError(UsageError):
    """Logits or wires have the wrong shape, range or values."""


class DataError(UsageError):
    """Grids, targets or masks do not fit the circuit."""


class DeviceMismatchError(UsageError):
    """An operation got operands on two devices."""


class ShapeError(UsageError):
    """An operation on tensors got shapes that do not fit."""


class DeviceError(DifflogicError):
    """A device cannot carry out the request."""


class NoAdapterError(DeviceError):
    """There is no adapter, or no adapter that matches the name or index."""


class LimitError(DeviceError):
    """The device lacks memory, or another of its limits is too low for the work."""


class KernelError(DeviceError):
    """A shader did not compile or a kernel does not match its specification."""


class ToolError(DifflogicError):
    """Another program that the work needs is missing, or fails."""


class MissingPackagesError(DifflogicError):
    """The request needs packages of an extra that is not installed."""

    @classmethod
    def of(cls, subject: str, extra: str, missing: str | None) -> MissingPackagesError:
        """Return the error for `subject`, which needs the module `missing`, a part of the extra `extra`."""
        return cls(
            f'{subject} needs {missing}, which comes with the extra `{extra}`: install it by pip install ".[{extra}]" '
            "in a folder with the sources of difflogic."
        )


class ExportError(DifflogicError):
    """An exported file differs from its circuit."""


class CheckpointError(DifflogicError):
    """A checkpoint is truncated, corrupt, or from another version."""


class RunFolderError(DifflogicError):
    """A run folder is not empty, in use, or cannot be written."""


class FaultyTaskError(DifflogicError):
    """A task in Python raised an error, or returned samples, numbers or images that cannot be used."""


class FaultyEnvironmentError(DifflogicError):
    """An environment raised an error, or returned numbers or episodes that no agent can learn from."""


class ServiceError(DifflogicError):
    """A server refused a request, or cannot be reached; `status` is the HTTP status, or 0 without an answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class StoreError(DifflogicError):
    """The store of the training service cannot be used, or does not allow the request."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, since messages of drivers may be pages long."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
