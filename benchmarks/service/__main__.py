"""Test the service with injected faults and under load; with --save, lines are appended to results/service.jsonl.

    python -m benchmarks.service kills --count 40 --save       # SIGKILL of workers, 40 times during training
    python -m benchmarks.service server-kills --count 50 --save    # SIGKILL of the server, with active clients
    python -m benchmarks.service nodes --count 20 --save       # loss of machines of a Ray cluster; new ones join
    python -m benchmarks.service sweep-nodes --count 20 --save # loss of machines during a sweep on the cluster
    python -m benchmarks.service store --save                  # damaged or old store files, full disks, wrong clocks
    python -m benchmarks.service abort --count 5 --save        # a submit with a destroyed buffer, on the GPU engine
    python -m benchmarks.service hang --count 5 --save         # the CPU engine hangs
    python -m benchmarks.service full --count 5 --save         # the disk is full at a checkpoint
    python -m benchmarks.service load --save                   # 1000 jobs wait, 100 clients listen, 20 requests/s;
                                                               # then 50,000 requests while memory is measured

The exit code is 1 if the result of a job differs from that of an undisturbed run, if a request failed, or if the
service exceeded a limit in `benchmarks.service.load.PROMISES`.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.service import cluster, load, servers, store_cases, store_faults, store_live, store_world, workers
from benchmarks.store import Line, append
from difflogic.bench.machine import stamp
from difflogic.serve.store.mount import ALLOW


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "case", choices=("kills", "server-kills", "nodes", "sweep-nodes", "store", *workers.FAULTS, "load")
    )
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the random moments")
    parser.add_argument("--seconds", type=float, default=60.0, help="of load")
    parser.add_argument("--requests", type=int, default=50_000, help="of the flood after the load")
    parser.add_argument("--save", action="store_true", help="append to results/service.jsonl")
    options = parser.parse_args()
    logging.getLogger("difflogic.serve").addHandler(logging.NullHandler())
    os.environ.setdefault(ALLOW, "1")  # temporary stores may be on any mount
    with tempfile.TemporaryDirectory() as folder:
        if options.case == "load":
            return _kept(load.measure(Path(folder) / "jobs", options.seconds, flood=options.requests), options.save)
        if options.case == "kills":
            outcome = workers.kill_workers(Path(folder), options.count, options.seed)
        elif options.case == "server-kills":
            outcome = servers.kill_servers(Path(folder), options.count, options.seed)
        elif options.case == "nodes":
            outcome = cluster.kill_nodes(Path(folder), options.count, options.seed)
        elif options.case == "sweep-nodes":
            outcome = cluster.kill_nodes_of_sweep(Path(folder), options.count, options.seed)
        elif options.case == "store":
            outcome = store_faults.strike_all(Path(folder), store_cases.CASES | store_world.CASES)
            store_live.strike_all(Path(folder), outcome)
        else:
            outcome = workers.faults(Path(folder), options.case, options.count, seed=options.seed)
    line = outcome.to_dict() | stamp()
    print(json.dumps(line))
    for each in outcome.wrong:
        print(each, file=sys.stderr)
    if options.save:
        append("service", [line])
    return 1 if outcome.wrong else 0


def _kept(line: Line, save: bool) -> int:
    print(json.dumps(line | stamp()))
    if save:
        append("service", [line | stamp()])
    return 1 if line.get("errors") or line.get("broken") else 0


if __name__ == "__main__":
    sys.exit(main())
