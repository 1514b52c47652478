"""Entry point of `difflogic` and `python -m difflogic`; it also handles Ctrl-C while the command line is imported."""

import sys


def main() -> int:
    """Run the command line (`difflogic.cli.main.main`) and return its exit code, or 130 after Ctrl-C."""
    try:
        from difflogic.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        return 130


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder, which `python -m` puts first: a file `numpy.py` in it must not run
    sys.exit(main())
