"""Build the commands of Python child processes, which import nothing from the current folder.

`python -m` and `python -c` put the current folder first on `sys.path`, and `python SCRIPT` the script's folder. A
child that imports NumPy would execute a file `numpy.py` in such a folder. These commands omit both folders.
"""

import sys


def python_command(*arguments: str) -> tuple[str, ...]:
    """Return the command of a Python child process that imports no modules from the current folder.

    Args:
        arguments: Arguments of the interpreter, such as `"-m", "difflogic.serve.worker.worker"`.

    Returns:
        The path of the interpreter, `-P`, and the arguments. The child inherits the environment, including PYTHONPATH.
    """
    return (sys.executable, "-P", *arguments)
