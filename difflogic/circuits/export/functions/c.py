"""Export of a C99 header that evaluates 64 samples at a time, or one sample in floating point or fixed point.

Verification compiles the header with gcc without warnings, and runs it.
"""

import numpy as np

from difflogic.circuits.export.c import FLAGS, optimised
from difflogic.circuits.export.functions.observations import Steps, trials
from difflogic.circuits.export.proving import check_cells, folder_of, vectors_for
from difflogic.circuits.export.text import Files, fill, statements
from difflogic.circuits.synthesis import tools
from difflogic.core.bits import pack_bits, unpack_bits
from difflogic.model.function_netlist import FunctionNetlist


def export(function: FunctionNetlist, name: str) -> Files:
    """Return the function in C99, as the contents of `NAME.h`."""
    assign = f"{function.buses[1]}[{{name}}] = {{value}};"
    body = statements(function, "const uint64_t {name} = {value};", assign, "0", "~UINT64_C(0)")
    form, places = function.thermometer.fixed_point(), function.thermometer.places

    def rows(thresholds: tuple[tuple[object, ...], ...]) -> str:
        codes = (f"(uint64_t)({function.words.sample}[{d}] >= {thresholds[d][i]})," for d, i in places)
        comments = (f" /* {name} */" for name in function.input_names)
        return "\n        ".join(code + comment for code, comment in zip(codes, comments, strict=True))

    fixed = tuple(tuple(f"INT64_C({value})" for value in values) for values in form.thresholds)
    both = {"rows": rows(function.thermometer.thresholds), "fixed_rows": rows(fixed)}
    return {f"{name}.h": fill("function.h", function, name, body=body, **both)}


def verify(function: FunctionNetlist, name: str, files: Files) -> list[str]:
    """Verify the exported file and return one sentence per successful check. Raises ExportError or ToolError."""
    level = optimised(function)
    what = f"gcc {level} (no warnings)"
    with folder_of({**files, "proof.c": fill("function_proof.c", function, name)}) as folder:
        tools.run_in(folder, "gcc", *FLAGS, level, "-o", "proof", "proof.c")
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
