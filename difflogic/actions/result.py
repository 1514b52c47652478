"""Results of actions: human-readable text, a machine-readable report, and files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from difflogic.circuits.export.text import Files
from difflogic.circuits.readers import source
from difflogic.circuits.readers.source import LoadedCircuit
from difflogic.errors import RunFolderError, UsageError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.runs.chosen import Source
from difflogic.system import files
from difflogic.system.brief import brief

Given = Source | LoadedCircuit | CellNetlist | FunctionNetlist | Circuit
"""Argument that specifies a circuit: a run, its folder, a file, a circuit object, or a rule such as `B36/S23`."""


@dataclass(frozen=True, repr=False)
class ResultTable:
    """Table of a result: headers and rows of text."""

    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    prose: bool = False
    """True if the table contains sentences rather than numbers."""

    __repr__ = brief


@dataclass(frozen=True, eq=False)
class ActionResult:
    """Result of an action: commands print `title`, `table` and `words`; workers store `files` and `report`."""

    title: str
    words: tuple[str, ...]
    """Sentences about the result, one per line."""
    report: dict[str, Any]
    """Machine-readable result as JSON data."""
    files: Files
    """Contents of the result's files by name, the main file first."""
    ok: bool = field(default=True, kw_only=True)
    """False if a proof or test failed; the command then ends with exit code 1."""
    told: str = field(default="", kw_only=True)
    """Sentence for users on the source of the circuit, such as a rule or the model chosen from a run; otherwise ""."""
    table: ResultTable | None = field(default=None, kw_only=True)
    stopped: bool = field(default=False, kw_only=True)
    """True if Ctrl-C ended the action early."""
    folder: Path | None = field(default=None, kw_only=True)
    """Run folder in which other commands expect the files; None if the circuit has no run folder."""
    outdated: tuple[str, ...] = field(default=(), kw_only=True)
    """Names of files that `keep` removes from the folder, since an earlier result may have written them."""

    __repr__ = brief

    @property
    def text(self) -> str:
        """Sentences of `words` joined in one line."""
        return " ".join(self.words)

    def keep(self, folder: Path | str | None = None) -> list[Path]:
        """Write the files to a folder, replacing older files, and return their paths.

        Args:
            folder: Folder for the files; None: the circuit's run folder.

        Raises:
            UsageError: `folder` is None and there is no run folder.
            RunFolderError: A file cannot be written.
        """
        path = self.folder if folder is None else Path(folder)
        if path is None:
            raise UsageError('This result has no run folder: give a folder for its files, as in keep("out").')
        written = [path / name for name in self.files]
        outdated = [path / name for name in {*self.outdated} - self.files.keys()]
        try:
            if folder is not None:  # a run folder that was deleted or moved is not created again
                path.mkdir(parents=True, exist_ok=True)
            for path, content in zip(written, self.files.values(), strict=True):
                files.write_atomically(path, content if isinstance(content, bytes) else content.encode())
        except OSError as error:
            raise RunFolderError(f"Cannot write {path}: {error.strerror or error}.") from error
        for path in outdated:
            path.unlink(missing_ok=True)
        return written

    def _repr_html_(self) -> str:
        """Return the title, words and table as HTML for notebooks."""
        parts = [f"<p>{escape(line)}</p>" for line in (self.title, *self.words) if line]
        if self.table is not None:
            rows = [("th", self.table.headers), *(("td", row) for row in self.table.rows)]
            lines = ["".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in rows]
            parts.insert(1, f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>")
        return "\n".join(parts)


def opened(given: Given, periodic: bool | None = None, visible: int | None = None) -> LoadedCircuit | FunctionNetlist:
    """Load the circuit of an automaton's cell (with its run, if any) or of a function.

    Raises:
        CircuitError: The file is not a circuit.
        CheckpointError: There is no usable checkpoint.
        UsageError: `given` is a run of agents without a controller, or has an unsupported type.
    """
    if isinstance(given, str | PathLike):
        return source.function(Path(given)) or source.load(given, periodic, visible)
    if isinstance(given, ActionResult):
        given = getattr(given, "netlist", given)
    if isinstance(given, Circuit):
        given = CellNetlist.from_circuit(given) if given.perceive else FunctionNetlist.from_circuit(given)
    if isinstance(given, CellNetlist):
        given = LoadedCircuit(given, "a netlist", name="circuit")
    if isinstance(given, LoadedCircuit | FunctionNetlist):
        return given
    raise UsageError(f"Expected a circuit, a run, or the path of one, got an object of type {type(given).__name__}.")


def name_of(given: Given) -> str:
    """Return a name for output files, from the run folder, the folder of a circuit.json, another file or the rule."""
    if not isinstance(given, str | PathLike):
        return given.name.replace("/", "") if isinstance(given, LoadedCircuit) else "circuit"
    path = Path(given).resolve()
    if not path.exists():
        return str(given).replace("/", "")  # a rule
    return path.parent.name if path.name == "circuit.json" else path.stem if path.is_file() else path.name
