"""Everything difflogic raises on purpose.

    DifflogicError                  exit code 1
    +-- UsageError                  exit code 2: the request itself is wrong
    |   +-- NotFoundError           a run, checkpoint, sweep or store that is not where the request says
    |   +-- ConfigError             a configuration field, preset or TOML file
    |   +-- CircuitError            logits, wires or their shapes
    |   +-- DataError               x, y or masks handed to an engine
    |   +-- DeviceMismatchError     operands on two devices
    |   +-- ShapeError              operands of tensors whose shapes do not fit
    +-- DeviceError                 the GPU side
    |   +-- NoAdapterError          no adapter, or none of the name asked for
    |   +-- LimitError              the device cannot hold or run what was asked
    |   +-- KernelError             a WGSL file did not compile
    +-- ToolError               another program is missing or fails
    +-- MissingPackagesError    an extra that is not installed
    +-- ExportError             an export does not compute what its circuit does
    +-- CheckpointError             a checkpoint that is corrupt or foreign
    +-- RunFolderError              a run folder that is occupied, locked or unwritable
    +-- FaultyTaskError         a task in Python that raises, or gives what no run can take
    +-- FaultyEnvironmentError  an environment that raises, or gives what nothing can be learned from
    +-- ServiceError            a server of the training service refused, or cannot be reached
    +-- StoreError                  the training service's store, its jobs and leases

Each message says what was expected, what came, and what to do; the command line prints it as one
sentence without a traceback.
"""

from __future__ import annotations


class DifflogicError(Exception):
    """Base of every deliberate error; `exit_code` is what the command line returns."""

    exit_code = 1


class UsageError(DifflogicError):
    """The request cannot be carried out as it was put."""

    exit_code = 2


class NotFoundError(UsageError):
    """The request names a run, a checkpoint, a sweep or a store that is not there."""


class ConfigError(UsageError):
    """A configuration value, preset name or TOML file is not usable."""


class CircuitError(UsageError):
    """Logits or wires have the wrong shape, range or values."""


class DataError(UsageError):
    """Grids, targets or masks do not fit the circuit."""


class DeviceMismatchError(UsageError):
    """An operation got operands that lie on two devices."""


class ShapeError(UsageError):
    """An operation on tensors got shapes that do not fit each other or it."""


class DeviceError(DifflogicError):
    """The GPU side cannot do what was asked."""


class NoAdapterError(DeviceError):
    """No adapter at all, or none that matches the name or index."""


class LimitError(DeviceError):
    """The device's limits are below what the work needs."""


class KernelError(DeviceError):
    """A shader did not compile or a kernel does not match its specification."""


class ToolError(DifflogicError):
    """A program of another project that the work needs is missing, or fails."""


class MissingPackagesError(DifflogicError):
    """The request needs packages of an extra that is not installed."""

    @classmethod
    def of(cls, what: str, extra: str, missing: str | None) -> MissingPackagesError:
        """`what` needs the extra, of which the module `missing` is not there."""
        return cls(
            f'{what} needs {missing}, which comes with the extra `{extra}`: install it by pip install ".[{extra}]" in '
            "a folder with the sources of difflogic."
        )


class ExportError(DifflogicError):
    """An exported file differs from the circuit that it was made of."""


class CheckpointError(DifflogicError):
    """A checkpoint is truncated, corrupt, or from another version."""


class RunFolderError(DifflogicError):
    """A run folder is not empty, in use, or cannot be written."""


class FaultyTaskError(DifflogicError):
    """A task in Python raised, or gave samples, numbers or pictures that cannot be used."""


class FaultyEnvironmentError(DifflogicError):
    """An environment raised, or gave numbers or episodes that no agent can learn from."""


class ServiceError(DifflogicError):
    """A server refused what a client asked, or cannot be reached; `status` is HTTP's, 0 without an answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class StoreError(DifflogicError):
    """The store of the training service cannot be used, or does not allow what was asked."""


def first_line(error: BaseException) -> str:
    """An error's first line: driver messages go on for pages."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
