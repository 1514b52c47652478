"""Export of a function as a Python file that needs only NumPy. Verification runs it in floating and fixed point."""

import numpy as np

from difflogic.circuits.export.functions.observations import trials
from difflogic.circuits.export.proving import check_cells, folder_of, run_numpy, vectors_for
from difflogic.circuits.export.text import Files, fill, statements
from difflogic.core.bits import pack_bits, unpack_bits
from difflogic.model.function_netlist import FunctionNetlist

_WORK = 2e9
"""Maximum number of gates times test vectors, since NumPy keeps all gate values in memory."""
_OF_BITS = 'np.save("result.npy", module.gates(np.load("code.npy")))'
_OF_STEPS = """
memory, seen, actions = 0, np.load("steps.npy"), []
for row in seen:
    memory = 0 if row[-module.MEMORY] else memory
    action, memory = module.step(memory, row[:-module.MEMORY])
    actions.append(action)
np.save("stepped.npy", actions)
"""
_OF_NUMBERS = """\
np.save("decided.npy", module.{verb}(np.load("values.npy")))
np.save("fixed_decided.npy", module.{verb}_fixed(np.load("fixed.npy")))
np.save("fixed_again.npy", module.fixed(np.load("values.npy")))
"""


def export(function: FunctionNetlist, name: str) -> Files:
    """Return the function in Python, as the contents of `NAME_numpy.py`."""
    zeros = "code[0] ^ code[0]"  # zeros with the dtype of `code`
    assign = f"{function.buses[1]}[{{name}}] = {{value}}"
    body = statements(function, "{name} = {value}", assign, zeros, f"~({zeros})")
    form = function.thermometer.fixed_point()

    def table(rows: tuple[tuple[float, ...], ...]) -> str:
        return "\n".join(f"    {list(row)},  # {name}" for row, name in zip(rows, function.observations, strict=True))

    values = {"thresholds": table(function.thermometer.thresholds), "fixed_thresholds": table(form.thresholds)}
    return {f"{name}_numpy.py": fill("function.py.txt", function, name, body=body, **values)}


def verify(function: FunctionNetlist, name: str, files: Files) -> list[str]:
    """Verify the exported file and return one sentence per successful check. Raises ExportError or ToolError."""
    program = _OF_NUMBERS.format(verb=function.words.verb) + _OF_STEPS * bool(function.memory)
    with folder_of(files) as folder:
        if function.reads_bits:
            vectors = vectors_for(function, _WORK)
            np.save(folder / "code.npy", pack_bits(vectors.inputs))
            run_numpy(folder, f"{name}_numpy", _OF_BITS)
            answers = unpack_bits(np.load(folder / "result.npy"), vectors.count)
            return [check_cells(function, vectors, answers, "NumPy")]
        tried, *steps = trials(function)
        np.save(folder / "values.npy", tried.values)
        np.save(folder / "fixed.npy", tried.fixed)
        for sequence in steps:
            np.save(folder / "steps.npy", sequence.values)
        run_numpy(folder, f"{name}_numpy", program)
        proofs = [tried.check(np.load(folder / "decided.npy"), False, "NumPy")]
        proofs.append(tried.check(np.load(folder / "fixed_decided.npy"), True, "NumPy"))
        again = function.decide_fixed(np.load(folder / "fixed_again.npy"), tried.form)
        tried.check(again, True, "NumPy's rounding")
        return [*proofs, *(sequence.check(np.load(folder / "stepped.npy"), False, "NumPy") for sequence in steps)]
