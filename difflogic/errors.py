"""Exception classes of difflogic, with the causes of each error.

    DifflogicError                  exit code 1
    +-- UsageError                  exit code 2: the request is not valid
    |   +-- NotFoundError           a run, checkpoint, sweep or store does not exist
    |   +-- ConfigError             a configuration field, preset or TOML file is invalid
    |   +-- CircuitError            a circuit is invalid, such as wires of a wrong shape or range
    |   +-- DataError               grids, samples, targets or a file with such data are unusable
    |   +-- DeviceMismatchError     operands are on different devices
    |   +-- ShapeError              operands of tensors have incompatible shapes
    +-- DeviceError                 a device cannot carry out the request
    |   +-- NoAdapterError          no GPU adapter exists or matches the selector
    |   +-- LimitError              memory or another limit of the device is too low
    |   +-- KernelError             a WGSL file does not compile
    +-- ToolError                   another program is missing or fails
    +-- MissingPackagesError        an extra is not installed
    +-- ExportError                 an exported file differs from its circuit
    +-- CheckpointError             a checkpoint is corrupt or of another version
    +-- RunFolderError              a run folder is not empty, locked or unwritable
    +-- FaultyTaskError             a task in Python raises an error or returns unusable values
    +-- FaultyEnvironmentError      an environment raises an error or returns unusable values
    +-- ServiceError                a server of the training service refuses a request or is unreachable
    +-- StoreError                  the store of the training service is unusable or refuses a request

Each message states what was expected, what was received and what to do. The command line prints it without a
traceback.
"""

from __future__ import annotations


class DifflogicError(Exception):
    """Base class of all errors that difflogic raises deliberately; `exit_code` is the exit code of the command."""

    exit_code = 1


class UsageError(DifflogicError):
    """The request is not valid and must be changed."""

    exit_code = 2


class NotFoundError(UsageError):
    """A run, checkpoint, sweep or store does not exist."""


class ConfigError(UsageError):
    """A configuration value, preset name or TOML file is invalid."""


class CircuitError(UsageError):
    """A circuit or its file is invalid; for example, logits or wires have a wrong shape or range."""


class DataError(UsageError):
    """Grids, targets or masks do not match the circuit, or a file with such data is unreadable."""


class DeviceMismatchError(UsageError):
    """The operands of an operation are on different devices."""


class ShapeError(UsageError):
    """The operands of an operation on tensors have incompatible shapes."""


class DeviceError(DifflogicError):
    """A device cannot carry out the request."""


class NoAdapterError(DeviceError):
    """No GPU adapter exists, or none matches the name or index."""


class LimitError(DeviceError):
    """The memory or another limit of the device is too low for the request."""


class KernelError(DeviceError):
    """A shader does not compile, or a kernel does not match its specification."""


class ToolError(DifflogicError):
    """Another program that the request needs is missing or fails."""


class MissingPackagesError(DifflogicError):
    """The request needs the packages of an extra that is not installed."""

    @classmethod
    def of(cls, subject: str, extra: str, missing: str | None) -> MissingPackagesError:
        """Return the error for `subject`, such as an option, which requires the module `missing` of an extra."""
        return cls(
            f'{subject} requires {missing}, part of the extra `{extra}`: install it with pip install ".[{extra}]" '
            "in the source folder of difflogic."
        )


class ExportError(DifflogicError):
    """An exported file is not equivalent to its circuit."""


class CheckpointError(DifflogicError):
    """A checkpoint is truncated, corrupt or of another version."""


class RunFolderError(DifflogicError):
    """A run folder is not empty, in use by another process, or unwritable."""


class FaultyTaskError(DifflogicError):
    """A task in Python raised an error, or returned unusable samples, numbers or images."""


class FaultyEnvironmentError(DifflogicError):
    """An environment raised an error, or returned invalid numbers or unusable episodes."""


class ServiceError(DifflogicError):
    """A server refused a request or is unreachable; `status` is the HTTP status, or 0 without a response."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class StoreError(DifflogicError):
    """The store of the training service is unusable or does not allow the request."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message (a driver's may be pages long), or its class name if it is empty."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
