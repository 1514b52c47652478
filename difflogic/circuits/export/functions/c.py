"""Export of a C99 header that evaluates 64 samples at a time, or one sample in floating point or fixed point.

Verification compiles the header with gcc without warnings, and runs it.
"""

import numpy as np

from difflogic.circuits.export.c import FLAGS
from difflogic.circuits.export.functions.observations import Steps, trials
from difflogic.circuits.export.proving import check_cells, folder_of, vectors_for
from difflogic.circuits.export.text import Files, bit_names, fill, statements
from difflogic.circuits.synthesis import tools
from difflogic.core.bits import pack_bits, unpack_bits
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.straight_line import expression, lines

PART = 1_000
"""Maximum number of gates in a C function; the time and memory that gcc needs grow faster than the function."""
ONES = "~UINT64_C(0)"


def export(function: FunctionNetlist, name: str) -> Files:
    """Return the function in C99, as the contents of `NAME.h`."""
    parts, body = _code(function, name)
    form, places = function.thermometer.fixed_point(), function.thermometer.places

    def rows(thresholds: tuple[tuple[object, ...], ...]) -> str:
        codes = (f"(uint64_t)({function.words.sample}[{d}] >= {thresholds[d][i]})," for d, i in places)
        comments = (f" /* {name} */" for name in function.input_names)
        return "\n        ".join(code + comment for code, comment in zip(codes, comments, strict=True))

    fixed = tuple(tuple(f"INT64_C({value})" for value in values) for values in form.thresholds)
    both = {"rows": rows(function.thermometer.thresholds), "fixed_rows": rows(fixed)}
    return {f"{name}.h": fill("function.h", function, name, parts=parts, body=body, **both)}


def _code(function: FunctionNetlist, name: str) -> tuple[str, str]:
    """Return C functions of at most `PART` gates, and the body that calls them; a small circuit has only the body.

    The array `w` has only bits that later parts read, so that gcc keeps the others in registers; with all bits of a
    `RegisterProgram` in an array, the code takes 1.5 times as long. A word is reused after the last part that reads it.
    """
    gates, assign = lines(function), f"{function.buses[1]}[{{name}}] = {{value}};"
    if len(gates) <= PART:
        return "", statements(function, "const uint64_t {name} = {value};", assign, "0", ONES)
    parts = [gates[first : first + PART] for first in range(0, len(gates), PART)]
    last_part = {bit: number for number, part in enumerate(parts) for line in part for bit in line.reads}
    last_part |= dict.fromkeys(function.outputs.tolist(), len(parts))
    names, slots, free, size = bit_names(function), dict[int, int](), list[int](), 0
    functions, calls = [], []
    for number, part in enumerate(parts):
        here, code = names.copy(), ["(void)code;"]
        for line in part:
            code.append(f"const uint64_t {here[line.bit]} = {expression(line, here.__getitem__, '0', ONES)};")
            if last_part[line.bit] > number:
                if not free:
                    free.append(size)
                    size += 1
                slots[line.bit] = free.pop()
                names[line.bit] = f"w[{slots[line.bit]}]"
                code.append(f"{names[line.bit]} = {here[line.bit]};")
        free += [slots.pop(bit) for bit in list(slots) if last_part[bit] == number]
        body = "\n    ".join(code)
        functions.append(
            f"static inline void {name}_part_{number}(const uint64_t *code, uint64_t *w)\n{{\n    {body}\n}}\n\n"
        )
        calls.append(f"{name}_part_{number}(code, w);")
    results = [assign.format(name=k, value=names[bit]) for k, bit in enumerate(function.outputs.tolist())]
    return "".join(functions), "\n    ".join([f"uint64_t w[{size}];", *calls, *results])


def verify(function: FunctionNetlist, name: str, files: Files) -> list[str]:
    """Verify the exported file and return one sentence per successful check. Raises ExportError or ToolError."""
    what = "gcc -O2 (no warnings)"
    with folder_of({**files, "proof.c": fill("function_proof.c", function, name)}) as folder:
        tools.run_in(folder, "gcc", *FLAGS, "-O2", "-o", "proof", "proof.c")
        if function.reads_bits:
            vectors = vectors_for(function)
            words = np.ascontiguousarray(pack_bits(vectors.inputs).T)
            output = np.frombuffer(tools.run_in(folder, "./proof", stdin=words.tobytes()), np.uint64)
            answers = unpack_bits(output.reshape(len(words), -1).T, vectors.count)
            return [check_cells(function, vectors, answers, what)]
        proofs = list[str]()
        for tried in trials(function):
            program = ["sequence"] * isinstance(tried, Steps)
            # The program reads each sample twice, in floating point and in fixed point, with eight bytes per number.
            both = np.stack([tried.values.view(np.int64), tried.fixed], axis=1)
            output = np.frombuffer(tools.run_in(folder, "./proof", *program, stdin=both.tobytes()), np.int32)
            proofs += [tried.check(output[::2], False, what), tried.check(output[1::2], True, what)]
    return proofs
