"""The service under blows: what becomes of jobs when workers, servers and disks fail, each line kept with --save.

    python -m benchmarks.service kills --count 200 --save      # SIGKILL of the worker
    python -m benchmarks.service server-kills --count 50 --save    # of the server, with clients
    python -m benchmarks.service abort --count 5 --save        # a submit with a destroyed buffer, on the GPU engine
    python -m benchmarks.service hang --count 5 --save
    python -m benchmarks.service full --count 5 --save         # the disk is full at a checkpoint

Exit code 1 where a job came to anything but what it would have come to undisturbed.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from pathlib import Path

from benchmarks.service import servers, workers
from benchmarks.store import append
from difflogic.bench.machine import stamp


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=("kills", "server-kills", *workers.FAULTS))
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the random moments")
    parser.add_argument("--save", action="store_true", help="append to results/service.jsonl")
    options = parser.parse_args()
    logging.getLogger("difflogic.serve").addHandler(logging.NullHandler())
    with tempfile.TemporaryDirectory() as folder:
        if options.case == "kills":
            outcome = workers.kill_workers(Path(folder), options.count, options.seed)
        elif options.case == "server-kills":
            outcome = servers.kill_servers(Path(folder), options.count, options.seed)
        else:
            outcome = workers.faults(Path(folder), options.case, options.count, seed=options.seed)
    line = outcome.to_dict() | stamp()
    print(json.dumps(line))
    for each in outcome.wrong:
        print(each, file=sys.stderr)
    if options.save:
        append("service", [line])
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
