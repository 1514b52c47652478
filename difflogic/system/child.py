"""Build the command of every Python child process.

`python -m` and `python -c` put the current folder first on `sys.path`, `python SCRIPT` the script's folder. A file
`numpy.py` in a downloaded folder would then run when a child imports NumPy.
"""

import sys


def python_command(*arguments: str) -> tuple[str, ...]:
    """Return the command of a Python child that imports nothing from the current folder.

    Args:
        arguments: The arguments of the interpreter, for example `"-m", "difflogic.serve.worker.worker"`.

    Returns:
        The interpreter, `-P`, and the arguments. The child inherits the environment, including PYTHONPATH.
    """
    return (sys.executable, "-P", *arguments)
