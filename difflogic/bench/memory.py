"""How much memory a case needs, beyond an idle interpreter, from a process of its own.

Run as `python -m difflogic.bench.memory CASE ENGINE`, the child prints its peak in bytes.
"""

from __future__ import annotations

import subprocess
import sys

from difflogic.bench.cases import select


def peak_bytes(case: str, engine: str) -> int | None:
    """Peak resident memory of opening the case and two train steps; None where the system does not tell."""
    if sys.platform == "win32":
        return None
    idle = _child(f"import resource; print({_PEAK})")
    peak = _child("from difflogic.bench.memory import main; main()", case, engine)
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, else KiB
    return None if idle is None or peak is None else (peak - idle) * unit


_PEAK = "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss"


def _child(code: str, *arguments: str) -> int | None:
    run = subprocess.run([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    last = run.stdout.split()[-1:]
    return int(last[0]) if run.returncode == 0 and last else None


def main() -> None:
    """The child: open, train, evaluate, and say how much it took."""
    import resource

    from difflogic.circuit import Circuit
    from difflogic.engine import TrainState
    from difflogic.train.placement import open_engine
    from difflogic.train.tasks import make_job

    name, engine = sys.argv[1:3]
    config = select([name], quick=False)[0].config
    circuit = Circuit.initial(config.model, config.seed)
    model = open_engine(engine).open_model(make_job(config, circuit), TrainState.initial(circuit, config.seed))
    model.train(2)
    model.drain()
    model.evaluate()
    model.close()
    sys.stdout.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}\n")
