"""Compare `difflogic simplify` with ABC and yosys: each program alone, and each on the results of the others.

    python -m benchmarks.circuits --save                # the stored circuits, and thirty random ones
    python -m benchmarks.circuits --random 4 life       # the stored circuit `life`, and four random ones
    python -m benchmarks.circuits --random 0 runs/NAME  # the circuit of a run or of a file
    python -m benchmarks.circuits --structured 7349     # thirty structured circuits, sampled with this seed

Gates are counted as by `difflogic simplify`: two-input gates, an XOR as one gate. Before a result of another program is
counted, it is read back and proved equal. A line per circuit and effort is appended to results/circuits.jsonl.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np

from benchmarks.circuits import structured
from benchmarks.store import Line, append
from difflogic.bench.machine import stamp
from difflogic.circuits.readers import blif, source
from difflogic.circuits.readers.signals import Signals
from difflogic.circuits.synthesis import tools
from difflogic.circuits.synthesis.blif import to_blif
from difflogic.circuits.synthesis.convert import gate_count, lean
from difflogic.circuits.synthesis.prove import prove
from difflogic.circuits.synthesis.simplify import simplified
from difflogic.config.choices import EFFORTS
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.netlist import Netlist

AnyNetlist = TypeVar("AnyNetlist", bound=Netlist)

MFS = "mfs2 -a -e -W 20 -F 200 -D 100 -M 1000"
END = f"if -K 2 -a; {MFS}; write_blif out1.blif; strash; dch; if -K 2 -a; {MFS}; {MFS}; write_blif out2.blif"
SCRIPTS = {
    "mfs2": (tools.ABC, f"strash; {END}"),
    "mfs2, kept": (tools.ABC, f"sweep; {MFS}; {MFS}; {MFS}; write_blif out1.blif"),
    "deepsyn": (tools.ABC, f"strash; &get; &deepsyn -T {{seconds}}; &put; {END}"),
    "resyn2": (tools.ABC, f"strash; b; rw; rf; b; rw; rwz; b; rfz; rwz; b; {END}"),
    "compress2rs": (tools.ABC, f"strash; compress2rs; {END}"),
    "dc2": (tools.ABC, f"strash; dc2; {END}"),
    "yosys": (tools.YOSYS, "techmap; abc -g AND,NAND,OR,NOR,XOR,XNOR,ANDNOT,ORNOT; opt_clean; write_blif out1.blif"),
}
"""Program and script by name; the smallest circuit that a script writes is counted."""


ABC_RC = "".join(
    f"alias {name} {command}\n"
    for name, command in {
        "b": "balance", "rw": "rewrite", "rwz": "rewrite -z", "rf": "refactor", "rfz": "refactor -z", "rs": "resub",
        "compress2rs": '"b -l; rs -K 6 -l; rw -l; rs -K 6 -N 2 -l; rf -l; rs -K 8 -l; b -l; rs -K 8 -N 2 -l; rw -l; '
        'rs -K 10 -l; rwz -l; rs -K 10 -N 2 -l; b -l; rs -K 12 -l; rfz -l; rs -K 12 -N 2 -l; rwz -l; b -l"',
    }.items()
)  # fmt: skip
"""Aliases from ABC's standard start-up file, which `&deepsyn` and the scripts use."""


def random_circuit(seed: int, count: int) -> CellNetlist:
    """Return a random circuit of `count` two-input gates and 1 to 4 channels, with wires of random maximum length."""
    rng = np.random.default_rng(seed)
    channels, reach = int(rng.integers(1, 5)), int(rng.integers(20, 120))
    ends = 9 * channels + np.arange(count)
    wires = np.stack([rng.integers(np.maximum(0, ends - reach), ends) for _ in range(2)], axis=1)
    return CellNetlist.build(channels, False, rng.choice(structured.TWO_INPUTS, count), wires, ends[-channels:])


def cases(named: list[str], random: int) -> Iterator[tuple[str, CellNetlist]]:
    kept = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.json"))}
    for name in named or kept:
        path = kept.get(name, Path(name))
        yield path.stem, source.load(path).netlist
    for seed in range(random):
        count = 200 + 1800 * seed // max(1, random - 1)
        yield f"random-{count}", random_circuit(seed, count)


def made_by(tool: str, script: str, netlist: CellNetlist) -> CellNetlist:
    """Return the smallest result of another program's script for a circuit, proved equal. Raises ToolError."""
    text = to_blif(netlist, netlist.input_names, netlist.output_names, "given")
    with TemporaryDirectory(prefix="difflogic-") as name:
        folder = Path(name)
        (folder / "in.blif").write_text(text)
        (folder / "abc.rc").write_text(ABC_RC)
        arguments = ["-q"] if tool == tools.ABC else ["-q", "-p"]
        tools.run_in(folder, tool, *arguments, f"read_blif in.blif; {script}")
        written = [lean(in_order(blif.read(path.read_text()), netlist)) for path in sorted(folder.glob("out?.blif"))]
    made = min(written, key=gate_count)
    (verdict,) = prove(netlist, made, ["difflogic"])
    assert verdict.equal, f"{tool} made another circuit: {verdict}"
    return made


def in_order(signals: Signals, like: AnyNetlist) -> AnyNetlist:
    """Return the circuit of a file with the inputs and outputs of `like`, matched by order instead of by name."""
    signals.is_named = False
    return signals.like(like)


def measured(name: str, netlist: CellNetlist, least: int, efforts: list[str], both_ways: bool) -> Iterator[Line]:
    """Yield a line per effort of simplify, with the results of other programs on the original and simplified circuit.

    `&deepsyn` has the time that simplify took with the first effort, but at least `least` seconds. If `both_ways`,
    simplify also runs on the smallest result of the other programs.
    """
    netlist = lean(netlist)
    alone: dict[str, CellNetlist] = {}
    for effort in efforts:
        # Processor seconds are measured, as by &deepsyn: wall-clock seconds depend on other users of the machine.
        began = time.process_time()
        found = simplified(netlist, effort=EFFORTS[effort])
        spent = time.process_time() - began
        assert found.verdict.equal, "what is counted is proved"
        if not alone:
            seconds = max(least, math.ceil(spent))
            scripts = {key: (tool, script.format(seconds=seconds)) for key, (tool, script) in SCRIPTS.items()}
            alone = {key: made_by(tool, script, netlist) for key, (tool, script) in scripts.items()}
        after = {key: made_by(tool, script, found.netlist) for key, (tool, script) in scripts.items()}
        line: Line = {
            "circuit": name,
            "effort": effort,
            "given": gate_count(netlist),
            "ours": gate_count(found.netlist),
            "seconds": round(spent, 2),
            "theirs": {key: gate_count(each) for key, each in alone.items()},
            "theirs_after_ours": {key: gate_count(each) for key, each in after.items()},
        }
        if both_ways:
            smallest = min(alone.values(), key=gate_count)
            line["ours_after_theirs"] = gate_count(simplified(smallest, effort=EFFORTS[effort]).netlist)
        yield {**line, "deepsyn_seconds": seconds, **stamp()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--random", type=int, default=30)
    parser.add_argument("--seconds", type=int, default=60, help="of &deepsyn, at least [60]")
    parser.add_argument("--structured", type=int, metavar="SEED", help="thirty drawn by a seed, and no others")
    parser.add_argument("--only", type=int, nargs="*", help="of these those counted so, from 0 on")
    parser.add_argument("--effort", nargs="*", choices=EFFORTS, default=[*EFFORTS], help="of simplify [both]")
    parser.add_argument("--alone", action="store_true", help="simplify does not go on from another's result")
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    simplified(random_circuit(0, 60))  # compiles the searches, which must not be timed
    print(
        "circuit               effort given  ours seconds | theirs | theirs after ours | ours after theirs", flush=True
    )
    chosen = cases(asked.names, asked.random) if asked.structured is None else structured.circuits(asked.structured)
    for index, (name, netlist) in enumerate(chosen):
        if asked.only is not None and index not in asked.only:
            continue
        for line in measured(name, netlist, asked.seconds, asked.effort, not asked.alone):
            show(line)
            if asked.save:
                append("circuits", [line])


def show(line: Line) -> None:
    """Print a line as a row of the table."""
    theirs = [" ".join(f"{gates:5}" for gates in line[key].values()) for key in ("theirs", "theirs_after_ours")]
    ours = f"{line['circuit']:21} {line['effort']:6} {line['given']:5} {line['ours']:5} {line['seconds']:7}"
    print(ours, *theirs, line.get("ours_after_theirs", ""), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
