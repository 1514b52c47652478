"""Measure in a child process the memory that a case needs in addition to that of an idle interpreter.

The child process `python -m difflogic.bench.memory CASE ENGINE` prints its peak memory in bytes.
"""

import re
import subprocess
import sys
from pathlib import Path

from difflogic.bench.cases import Case, select
from difflogic.system.child import python_command


def own_peak_bytes() -> int | None:
    """Return this process's peak resident memory in bytes, or None if the system does not report it."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would include the memory of the parent at the start of this process
        match = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))
        return int(match.group(1)) * 1024 if match else None
    if sys.platform == "win32":
        return None
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def peak_bytes(case: str, engine: str) -> int | None:
    """Return the peak memory in bytes of opening, two train steps and an evaluation, minus that of an idle process."""
    # The idle process measures the interpreter and its imports, whose memory does not depend on the engine.
    idle, peak = _child(), _child(case, engine)
    return None if idle is None or peak is None else peak - idle


def _child(*arguments: str) -> int | None:
    command = python_command("-m", "difflogic.bench.memory", *arguments)
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    last = run.stdout.split()[-1:]
    return int(last[0]) if run.returncode == 0 and last and last[0].isdigit() else None


def _work(name: str, engine: str) -> None:
    from difflogic.devices.open import open_engine
    from difflogic.engine.job import TrainState, make_job
    from difflogic.model.circuit import Circuit

    (config,) = (case.config for case in select([name], quick=False) if isinstance(case, Case))
    circuit = Circuit.initial(config.model, config.seed)
    job = make_job(config, circuit)
    model = open_engine(engine).open([job], [TrainState.initial(job)])
    model.train(2)
    model.fetch_metrics()
    model.evaluate()
    model.close()


def main(arguments: list[str]) -> None:
    """Open, train and evaluate the case on the engine in `arguments`, if any, then print this process's peak memory."""
    if arguments:
        _work(*arguments)
    sys.stdout.write(f"{own_peak_bytes()}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
