"""A Python file that needs nothing but NumPy. The proof has this Python run it, in both forms."""

from __future__ import annotations

import sys

import numpy as np

from difflogic.circuits.export.functions.observations import Observations
from difflogic.circuits.export.proving import folder_of
from difflogic.circuits.export.text import Files, fill, statements
from difflogic.circuits.synthesis import tools
from difflogic.model.controller import Controller

_PROGRAM = """\
import numpy as np
import {name}_numpy as module
np.save("actions.npy", module.act(np.load("values.npy")))
np.save("fixed_actions.npy", module.act_fixed(np.load("fixed.npy")))
np.save("fixed_again.npy", module.fixed(np.load("values.npy")))
"""


def export(controller: Controller, name: str) -> Files:
    """`NAME_numpy.py`."""
    zeros = "code[0] ^ code[0]"  # of the type at hand
    body = statements(controller, "{name} = {value}", "action[{name}] = {value}", zeros, f"~({zeros})")
    form = controller.thermometer.fixed_point()

    def table(rows: tuple[tuple[float, ...], ...]) -> str:
        return "\n".join(f"    {list(row)},  # {said}" for row, said in zip(rows, controller.observations, strict=True))

    values = {"thresholds": table(controller.thermometer.thresholds), "fixed_thresholds": table(form.thresholds)}
    return {f"{name}_numpy.py": fill("function.py.txt", controller, name, body=body, **values)}


def verify(controller: Controller, name: str, files: Files) -> list[str]:
    """Raises ExportError and ToolError."""
    tried = Observations(controller, controller.thermometer.fixed_point())
    with folder_of({**files, "proof.py": _PROGRAM.format(name=name)}) as folder:
        np.save(folder / "values.npy", tried.values)
        np.save(folder / "fixed.npy", tried.fixed)
        tools.run_in(folder, sys.executable, "proof.py")
        actions, fixed, again = (
            np.load(folder / f"{file}.npy") for file in ("actions", "fixed_actions", "fixed_again")
        )
    proofs = [tried.check(actions, False, "NumPy"), tried.check(fixed, True, "NumPy")]
    tried.check(controller.act_fixed(again, tried.form), True, "NumPy's rounding")
    return proofs
