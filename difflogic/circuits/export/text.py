"""All formats share these: names that are words in each language, templates, and what a file says of itself."""

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
"""A format's files by name."""

MAX_NAME = 60
"""Characters of a name that are kept: file systems and Golly have limits."""

_DEVICE = re.compile(r"con|prn|aux|nul|com\d|lpt\d", re.IGNORECASE)
_MARK = re.compile(r"@([A-Z_]+)@")
_PART = re.compile(r"@WHERE ([A-Z_]+)@\n(.*?)@END@\n", re.DOTALL)
_MODULE = re.compile(r"^(?:import .*;\n|export )", re.MULTILINE)
_TEMPLATES = resources.files(__package__) / "templates"


def identifier(name: str) -> str:
    """A word in every language: ASCII letters, digits and single underscores, a letter first and none last.

    It may be a keyword: what is written is the word with an ending, such as `_cell`. No file of Windows may be called
    by it where it is a device there, such as `aux`.
    """
    word = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    if not word or not word[0].isalpha() or _DEVICE.fullmatch(word):
        word = f"circuit_{word}".rstrip("_")
    return word[:MAX_NAME].rstrip("_")


def write(files: Files, out: Path, force: bool = False) -> None:
    """All files or, where one is there with another content and `force` is not set, none.

    Raises UsageError, DifflogicError, also if a link leads out of the folder, and OSError.
    """
    if out.is_file():
        raise UsageError(f"{out} is a file, and exports are files in a folder: name a folder.")
    out.mkdir(parents=True, exist_ok=True)
    contents = {
        inside(out / file, out): text if isinstance(text, bytes) else text.encode() for file, text in files.items()
    }
    # A file with the same content may stay, so that the same export can be made twice without `force`. Every file is
    # checked before the first is written.
    outputs = {Output(path, force or _holds(path, content)): content for path, content in contents.items()}
    for output, content in outputs.items():
        output.write(content)


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def text_of(files: Files, file: str) -> str:
    """A file that is text."""
    content = files[file]
    return content if isinstance(content, str) else content.decode()


def template(file: str) -> str:
    """The text of a template."""
    return (_TEMPLATES / file).read_text(encoding="utf-8")


def script(*files: str) -> str:
    """Return templates in JavaScript as one classic script: modules among them lose their imports and exports."""
    return _MODULE.sub("", "".join(map(template, files)))


def fill(file: str, netlist: Netlist, name: str, **values: object) -> str:
    """A template with `@MARK@` replaced by `values["mark"]`, or by what `_marks` says of the circuit.

    What stands between the lines `@WHERE MARK@` and `@END@` is left out where that is false. Raises ExportError for a
    mark without a value, or a value without a mark.
    """
    text = template(file)
    known = {"name": name, "upper": name.upper()} | _marks(netlist) | values
    all_marks = {mark.lower() for mark in _MARK.findall(text)}
    text = _PART.sub(lambda part: part[2] if known[part[1].lower()] else "", text)
    marks = {mark.lower() for mark in _MARK.findall(text)}
    # A mark without a value would be shipped as it stands, and a value without a mark is an error of ours.
    if wrong := (marks - known.keys()) | (values.keys() - all_marks):
        raise ExportError(f"The template {file} and what fills it differ in {', '.join(sorted(wrong))}.")
    return _MARK.sub(lambda mark: str(known[mark[1].lower()]), text)


def about(netlist: Netlist) -> str:
    """One line: what made the file, and from what, with the number of gates as everywhere, but of a whole grid.

    Channels are named where some were dropped: `3 channels (0, 2, 3)`.
    """
    if isinstance(netlist, CellNetlist | FunctionNetlist):
        gates = live_gates(netlist)
    else:
        gates = sum(len(line.reads) == 2 for line in lines(netlist))
    return f"difflogic {__version__}: {counted(gates, 'gate')}, {_ends(netlist)}."


def _ends(netlist: Netlist) -> str:
    match netlist:
        case CellNetlist():
            boundary = "wraps around" if netlist.periodic else "is 0 outside"
            seen = "" if netlist.neighbourhood == "moore" else f"neighbourhood {netlist.neighbourhood}; "
            names = "" if netlist.origin == tuple(range(netlist.channels)) else f" ({channel_names(netlist.origin)})"
            return (
                f"{counted(netlist.channels, 'channel')}{names}, {netlist.visible} visible; {seen}the grid {boundary}"
            )
        case FunctionNetlist(choices=choices):
            where = f" in {netlist.environment}" if isinstance(netlist, Controller) and netlist.environment else ""
            kept = len(netlist.latches)
            read = counted(netlist.inputs - kept, "input" if netlist.reads_bits else "threshold")
            read += f", {counted(kept, 'bit')} of memory" if netlist.memory else ""
            result = f"{len(choices)} {netlist.words.choices}" if choices else counted(len(netlist.outputs), "output")
            return f"{read}, {result}{where}"
    return f"{counted(netlist.inputs, 'input')}, {counted(len(netlist.outputs), 'output')}"


def _marks(netlist: Netlist) -> dict[str, object]:
    """Return what templates ask of every circuit; a language that writes one of them otherwise gives its own value."""
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
    # A bit is an input of hardware as it is; a number takes so many.
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
    """`0 left, 1 right`: every name in a comment, however many."""
    return ", ".join(f"{number} {name}" for number, name in enumerate(names))


def channel_names(origin: tuple[int, ...]) -> str:
    """All channel numbers, those that follow each other as `0-5`: a header tells what each of 125 channels was."""
    # Each number less its place is the same for numbers that follow each other: 3, 4, 7 are 3 - 0, 4 - 1, 7 - 2.
    runs = [[number for _, number in run] for _, run in groupby(enumerate(origin), lambda each: each[1] - each[0])]
    parts = [map(str, run) if len(run) < 3 else [f"{run[0]}-{run[-1]}"] for run in runs]
    return ", ".join(chain(*parts))


def bit_names(netlist: Netlist, inputs: str | None = None) -> list[str]:
    """Return what each bit is called: inputs by their number, as `patch[{}]` unless told, gates as in circuit.json."""
    form = inputs or f"{netlist.buses[0]}[{{}}]"
    return [form.format(bit) for bit in range(netlist.inputs)] + [f"g{gate}" for gate in range(len(netlist.gates))]


def output_names(netlist: Netlist) -> list[str]:
    """Return what each output is called, by its number."""
    return [f"{netlist.buses[1]}[{index}]" for index in range(len(netlist.outputs))]


def legend(netlist: Netlist) -> list[str]:
    """Lines that say what the bits of a function are; of a cell the format's own documentation does."""
    if not isinstance(netlist, FunctionNetlist):
        return []
    pairs = list(zip(bit_names(netlist), netlist.input_names, strict=False))
    if not netlist.choices:
        pairs += zip(output_names(netlist), netlist.output_names, strict=True)
    ends = [f"{name} is {said}" for name, said in pairs]
    decides = f"{netlist.buses[1]} is the number of one of: {', '.join(netlist.choices)}"
    return [*ends, decides] if netlist.choices else ends


def statements(netlist: Netlist, assign: str, result: str, zero: str, one: str, inputs: str | None = None) -> str:
    """The gates in the operators `~ & | ^`: `assign` with `{name}` and `{value}` for each gate, then `result`.

    Indented by four blanks, the first line's left out.
    """
    names = bit_names(netlist, inputs)
    found = [
        assign.format(name=names[line.bit], value=expression(line, names.__getitem__, zero, one))
        for line in lines(netlist)
    ]
    outputs = enumerate(netlist.outputs.tolist())
    return "\n    ".join(found + [result.format(name=channel, value=names[output]) for channel, output in outputs])
