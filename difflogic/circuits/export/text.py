"""Functions for the texts of all formats: names that are valid in every language, templates, and descriptions."""

import re
from importlib import resources
from itertools import chain, groupby
from pathlib import Path

from difflogic.circuits.synthesis.function import live_gates
from difflogic.errors import ExportError, UsageError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.controller import Controller
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.netlist import Netlist
from difflogic.model.straight_line import expression, lines
from difflogic.system.files import Output, inside
from difflogic.system.words import counted
from difflogic.version import __version__

Files = dict[str, str | bytes]
"""Mapping from names of exported files to their contents."""

MAX_NAME = 60
"""Maximum number of characters in an exported name, because of limits in file systems and Golly."""

_DEVICE = re.compile(r"con|prn|aux|nul|com\d|lpt\d", re.IGNORECASE)
_MARK = re.compile(r"@([A-Z_]+)@")
_PART = re.compile(r"@WHERE ([A-Z_]+)@\n(.*?)@END@\n", re.DOTALL)
_MODULE = re.compile(r"^(?:import .*;\n|export )", re.MULTILINE)
_TEMPLATES = resources.files(__package__) / "templates"


def identifier(name: str) -> str:
    """Turn `name` into an identifier for every language: ASCII letters, digits and single underscores, a letter first.

    The result may be a keyword, since a suffix such as `_cell` follows, but no reserved name of Windows such as `aux`.
    """
    word = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    if not word or not word[0].isalpha() or _DEVICE.fullmatch(word):
        word = f"circuit_{word}".rstrip("_")
    return word[:MAX_NAME].rstrip("_")


def write(files: Files, out: Path, force: bool = False) -> None:
    """Write all files to the folder `out`, or none if an existing file has different contents and `force` is False.

    Raises UsageError in the latter case; OSError; or DifflogicError, for example if a link leads out of the folder.
    """
    if out.is_file():
        raise UsageError(f"Expected a folder for the exported files, got the file {out}.")
    out.mkdir(parents=True, exist_ok=True)
    outputs = []
    for file, text in files.items():
        path = inside(out / file, out)
        content = text if isinstance(text, bytes) else text.encode()
        # A file with equal contents may exist, so that an export can be repeated.
        outputs.append((Output(path, force or (path.is_file() and path.read_bytes() == content)), content))
    for output, content in outputs:  # all outputs are checked before the first write
        output.write(content)


def text_of(files: Files, file: str) -> str:
    """Return the contents of `file` as text, decoded if necessary."""
    content = files[file]
    return content if isinstance(content, str) else content.decode()


def template(file: str) -> str:
    """Return the text of the template file `file`."""
    return (_TEMPLATES / file).read_text(encoding="utf-8")


def script(*files: str) -> str:
    """Return JavaScript templates joined into one classic script, without `import` and `export`."""
    return _MODULE.sub("", "".join(map(template, files)))


def fill(file: str, netlist: Netlist, name: str, **values: object) -> str:
    """Return the template `file` with each `@MARK@` replaced by `values["mark"]`, or by `_marks(netlist)["mark"]`.

    Text between the lines `@WHERE MARK@` and `@END@` is omitted if the mark's value is false. Raises ExportError for a
    mark without a value, or a value without a mark.
    """
    text = template(file)
    all_values = {"name": name, "upper": name.upper()} | _marks(netlist) | values
    all_marks = {mark.lower() for mark in _MARK.findall(text)}
    text = _PART.sub(lambda part: part[2] if all_values[part[1].lower()] else "", text)
    marks = {mark.lower() for mark in _MARK.findall(text)}
    if wrong := (marks - all_values.keys()) | (values.keys() - all_marks):
        raise ExportError(f"Expected one value for each mark of the template {file}: check {', '.join(sorted(wrong))}.")
    return _MARK.sub(lambda mark: str(all_values[mark[1].lower()]), text)


def about(netlist: Netlist) -> str:
    """Return a line with difflogic's version and the number of live gates (all gates of a grid), inputs and outputs.

    Channel numbers are listed if some were removed: `3 channels (0, 2, 3)`.
    """
    if isinstance(netlist, CellNetlist | FunctionNetlist):
        gates = live_gates(netlist)
    else:
        gates = sum(len(line.reads) == 2 for line in lines(netlist))
    return f"difflogic {__version__}: {counted(gates, 'gate')}, {_ends(netlist)}."


def _ends(netlist: Netlist) -> str:
    match netlist:
        case CellNetlist():
            names = "" if netlist.origin == tuple(range(netlist.channels)) else f" ({channel_names(netlist.origin)})"
            channels = f"{counted(netlist.channels, 'channel')}{names}, {netlist.visible} visible"
            seen = "" if netlist.neighbourhood == "moore" else f"neighbourhood {netlist.neighbourhood}; "
            return f"{channels}; {seen}the grid {'wraps around' if netlist.periodic else 'is 0 outside'}"
        case FunctionNetlist(choices=choices):
            where = f" in {netlist.environment}" if isinstance(netlist, Controller) and netlist.environment else ""
            latches = len(netlist.latches)
            read = counted(netlist.inputs - latches, "input" if netlist.reads_bits else "threshold")
            read += f", {counted(latches, 'bit')} of memory" if netlist.memory else ""
            result = f"{len(choices)} {netlist.words.choices}" if choices else counted(len(netlist.outputs), "output")
            return f"{read}, {result}{where}"
    return f"{counted(netlist.inputs, 'input')}, {counted(len(netlist.outputs), 'output')}"


def _marks(netlist: Netlist) -> dict[str, object]:
    """Return a circuit's values for the marks that all templates share, by the name of the mark in lower case."""
    marks: dict[str, object] = {"about": about(netlist), "inputs": netlist.inputs, "last_input": netlist.inputs - 1}
    match netlist:
        case CellNetlist():
            marks |= {"channels": netlist.channels, "last_channel": netlist.channels - 1}
            marks |= {"visible": netlist.visible, "periodic": int(netlist.periodic)}
        case FunctionNetlist():
            marks |= _function_marks(netlist)
    return marks


def _function_marks(netlist: FunctionNetlist) -> dict[str, object]:
    words, result, dimensions = netlist.words, netlist.buses[1], len(netlist.observations)
    bits, decides, form = netlist.reads_bits, bool(netlist.choices), netlist.thermometer.fixed_point()
    number = f"the number of {words.a_choice}"
    marks: dict[str, object] = {**words._asdict(), "inputs": netlist.inputs, "kind": netlist.kind}
    marks["result"] = result
    marks |= {"reads_bits": bits, "reads_numbers": not bits, "decides": decides}
    marks |= {"sample_title": words.sample.capitalize(), "sample_names": _numbered(netlist.observations)}
    marks["result_title"] = (words.choice if decides else result).capitalize()
    marks["result_names"] = _numbered(netlist.choices or netlist.named_outputs)
    marks["ends"] = f"{words.a_sample} in, {number if decides else 'bits'} out"
    marks["code_said"] = "input i is" if bits else "threshold i is reached"
    marks["result_said"] = f"bit i of the {words.choice}'s number" if decides else "output i"
    marks |= {"inputs_upper": words.inputs.upper(), "choices_upper": words.choices.upper()}
    marks |= {"code_upper": "INPUTS" if bits else "THRESHOLDS", "result_upper": result.upper()}
    marks |= {"dimensions": dimensions, "choices": len(netlist.choices), "actions": len(netlist.choices)}
    marks |= {"result_bits": len(netlist.outputs), "last_result_bit": len(netlist.outputs) - 1}
    marks |= {"width": form.width, "fraction_bits": form.fraction_bits}
    seen, memory = dimensions - netlist.memory, netlist.memory
    marks |= {"remembers": bool(memory), "memory": memory, "last_memory_bit": memory - 1}
    marks |= {"last_seen_bit": seen * form.width - 1, "last_choice_bit": len(netlist.outputs) - memory - 1}
    marks["weight"] = 1 << len(netlist.outputs) - memory
    marks["last_bit"] = dimensions * (1 if bits else form.width) - 1
    apart = f"they differ in less than 2^-{form.fraction_bits} above a threshold, and nowhere else"
    marks["agreement"] = f"they agree on every {words.sample}" if form.exact else apart
    return marks


def _numbered(names: tuple[str, ...]) -> str:
    """Return numbered names as text, such as `0 left, 1 right`."""
    return ", ".join(f"{number} {name}" for number, name in enumerate(names))


def channel_names(origin: tuple[int, ...]) -> str:
    """Return channel numbers as text, with three or more consecutive ones as `0-5`."""
    # Number minus index is constant within a run: for 3, 4, 7 it is 3 - 0, 4 - 1, 7 - 2.
    runs = [[number for _, number in run] for _, run in groupby(enumerate(origin), lambda pair: pair[1] - pair[0])]
    parts = [map(str, run) if len(run) < 3 else [f"{run[0]}-{run[-1]}"] for run in runs]
    return ", ".join(chain(*parts))


def bit_names(netlist: Netlist, inputs: str | None = None) -> list[str]:
    """Return each bit's name: inputs by the format `inputs`, by default as in `patch[0]`; gates as in `g0`, `g1`."""
    form = inputs or f"{netlist.buses[0]}[{{}}]"
    return [form.format(bit) for bit in range(netlist.inputs)] + [f"g{gate}" for gate in range(len(netlist.gates))]


def output_names(netlist: Netlist) -> list[str]:
    """Return the exported name of each output, such as `result[0]`."""
    return [f"{netlist.buses[1]}[{index}]" for index in range(len(netlist.outputs))]


def legend(netlist: Netlist) -> list[str]:
    """Return lines that state the meaning of a function's bits; an empty list for a cell, whose bits need none."""
    if not isinstance(netlist, FunctionNetlist):
        return []
    pairs = list(zip(bit_names(netlist), netlist.input_names, strict=False))
    if not netlist.choices:
        pairs += zip(output_names(netlist), netlist.output_names, strict=True)
    ends = [f"{name} is {meaning}" for name, meaning in pairs]
    decides = f"{netlist.buses[1]} is the number of one of: {', '.join(netlist.choices)}"
    return [*ends, decides] if netlist.choices else ends


def statements(netlist: Netlist, assign: str, result: str, zero: str, one: str, inputs: str | None = None) -> str:
    """Return statements that compute the netlist with the operators `~ & | ^`.

    `assign` is the template for a gate, `result` the template for an output, both with `{name}` and `{value}`; `zero`
    and `one` are the constants; `inputs` is as in `bit_names`. Lines after the first are indented by four spaces.
    """
    names = bit_names(netlist, inputs)
    values = ((names[line.bit], expression(line, names.__getitem__, zero, one)) for line in lines(netlist))
    code = [assign.format(name=name, value=value) for name, value in values]
    code += [result.format(name=index, value=names[output]) for index, output in enumerate(netlist.outputs.tolist())]
    return "\n    ".join(code)
