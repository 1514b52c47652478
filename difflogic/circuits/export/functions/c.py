"""C99: one header, whose functions take an observation in floating point or in fixed point.

The proof has gcc compile it without a warning, and runs both functions.
"""

from __future__ import annotations

import numpy as np

from difflogic.circuits.export.c import FLAGS, optimised
from difflogic.circuits.export.functions.observations import Observations
from difflogic.circuits.export.proving import folder_of
from difflogic.circuits.export.text import Files, fill, statements
from difflogic.circuits.synthesis import tools
from difflogic.model.controller import Controller


def export(controller: Controller, name: str) -> Files:
    """`NAME.h`."""
    body = statements(controller, "const uint64_t {name} = {value};", "action[{name}] = {value};", "0", "~UINT64_C(0)")
    form, places = controller.thermometer.fixed_point(), controller.thermometer.places

    def rows(thresholds: tuple[tuple[object, ...], ...]) -> str:
        found = [f"(uint64_t)(observation[{d}] >= {thresholds[d][i]})," for d, i in places]
        said = (f" /* {name} */" for name in controller.input_names)
        return "\n        ".join(row + words for row, words in zip(found, said, strict=True))

    fixed = tuple(tuple(f"INT64_C({value})" for value in values) for values in form.thresholds)
    text = fill(
        "function.h",
        controller,
        name,
        body=body,
        rows=rows(controller.thermometer.thresholds),
        fixed_rows=rows(fixed),
    )
    return {f"{name}.h": text}


def verify(controller: Controller, name: str, files: Files) -> list[str]:
    """Raises ExportError and ToolError."""
    tried = Observations(controller, controller.thermometer.fixed_point())
    level = optimised(controller)
    proof = fill("function_proof.c", controller, name)
    with folder_of({**files, "proof.c": proof}) as folder:
        tools.run_in(folder, "gcc", *FLAGS, level, "-o", "proof", "proof.c")
        # Each observation twice, eight bytes a number in both forms.
        both = np.stack([tried.values.view(np.int64), tried.fixed], axis=1)
        given = np.frombuffer(tools.run_in(folder, "./proof", stdin=both.tobytes()), np.int32).reshape(-1, 2)
    what = f"gcc {level} (no warnings)"
    return [tried.check(given[:, 0], False, what), tried.check(given[:, 1], True, what)]
