"""Entry point of `difflogic` and `python -m difflogic`: handles Ctrl-C even while the command line is being loaded."""

import sys


def main() -> int:
    """Run the command line and return its exit code, as `difflogic.cli.main.main` does."""
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
