"""`difflogic evaluate`: test the circuit of a run far beyond its training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli import options as shared
from difflogic.cli.request import parse
from difflogic.cli.screen import sinks
from difflogic.cli.screen.result import save, show
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.actions.result import ActionResult
    from difflogic.config.dataset import Dataset
    from difflogic.config.table import LabelledTable
    from difflogic.system.files import Output

SHARE = click.FloatRange(0, 1)


@click.command("evaluate")
@click.argument("runs", type=shared.PATH, nargs=-1, required=True, metavar="RUN...")
@click.option("--starts", type=click.IntRange(min=1), help="The number of new initial states [64; quick 8].")
@click.option("--data", type=shared.PATH, help="Test on the samples in this file, not on the held-out ones.")
@click.option("--label", metavar="COLUMN", help="A classifier's label column in --data [the only non-feature column].")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="task.NAME=VALUE",
    help="For a task in Python: change a setting for generating the new samples. May be repeated.",
)
@click.option("--member", type=int, metavar="N", help="For a population: use the N-th model [the best].")
@shared.quick_option
@click.option("--damage", type=int, metavar="CELLS", help="For a policy automaton: zero this many cells per decision.")
@click.option("--flip", type=SHARE, default=0.0, metavar="P", help="Accuracy with flipped bits, up to this rate.")
@click.option("--stuck-cells", type=SHARE, default=0.0, metavar="P", help="Accuracy with stuck cells up to this share.")
@click.option(
    "--stuck-gates",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Accuracy with up to N stuck gates, then with each single gate of the simplified circuit stuck.",
)
@shared.output_option("--html", help="Write a report with curves and animations to one HTML file.")
@shared.output_option("--curves", help="For several runs: draw their robustness over all steps to a .png file.")
@shared.force_option
@shared.json_option
@shared.engine_options
def command(runs: tuple[Path, ...], html: Output | None, curves: Output | None, as_json: bool, **options: Any) -> int:
    """Test the hard circuit of RUN on new initial states: for longer, on larger grids, asynchronously and with damage.

    RUN is a run folder or a checkpoint; for a population the best model is tested. The results are printed next to the
    paper's, those of several RUNs side by side, and saved in each run folder as evaluation.json. Every engine gives
    exact rollouts. By default the command uses the run's hardware GPU if there is one, otherwise the CPU engine.

    --flip, --stuck-cells and --stuck-gates measure faults: bits that flip before a step, and cells and gates that
    are stuck at 0 or 1. Their curves are in the run folder's faults.png and in the report.

    For agents or a controller.json the command plays --starts new episodes [100], and prints the returns of random and
    constant agents too. --damage sets random cells of the automaton to zero for each decision: first before one of its
    steps, then before each of them.

    For a classifier the command prints its accuracy, overall and for each class, on the rows that its run held out or
    on those of a table --data. A function in a file always requires --data.

    Example: difflogic evaluate runs/NAME --html report.html

    Example: difflogic evaluate runs/ONE runs/OTHER --curves robustness.png
    """
    from difflogic.actions.evaluate import REPORT, ROBUSTNESS, beside, evaluate
    from difflogic.evaluation.faults import FaultTests

    if len(runs) == 1 and curves is not None:
        raise UsageError("--curves requires several runs: name another run, or give --html instead.")
    if len(runs) > 1 and html is not None:
        raise UsageError("--html requires a single run: omit it, or name only one run.")
    settings: dict[str, Any] = {name: options[name] for name in ("starts", "quick", "member", "damage")} | {
        "tell": (lambda _: None) if as_json else sinks.working,
        "data": _data(runs[0], options["data"], options["label"]),
        "settings": _settings(options["assignments"]),
        "faults": FaultTests(*(options[name] for name in ("flip", "stuck_cells", "stuck_gates"))),
        "html": html is not None,
    }
    engine = shared.take_engine(options)
    results = {str(run): evaluate(run, engine, **settings) for run in dict.fromkeys(runs)}
    if len(results) == 1:
        [result] = results.values()
        return show(result, as_json, lambda: _save(result, html, REPORT))
    comparison = beside(results)
    if curves is not None and ROBUSTNESS not in comparison.files:
        raise UsageError("--curves requires a robustness test, which none of these runs has: omit it.")
    paths = [path for result in results.values() for path in save(result, "the results are")]
    return show(comparison, as_json, lambda: [*paths, *_save(comparison, curves, ROBUSTNESS)])


def _data(run: Path, file: Path | None, label: str | None) -> Dataset | LabelledTable | None:
    """Load the file of `--data`: a classifier's table, or samples. Raises DataError, LimitError or UsageError."""
    from difflogic.actions import accuracy
    from difflogic.config import dataset, table

    if file is None:
        if label is not None:
            raise UsageError("--label requires a table: give --data FILE.")
        return None
    if label is None and not accuracy.is_classifier(run):
        return dataset.load(file)
    return table.load_table(file, label or accuracy.label_of(run, file))


def _save(result: ActionResult, out: Output | None, name: str) -> list[Path]:
    """Write the result's file `name` to `out`, if set, and its other files to the run folder; return all paths."""
    content = result.files.pop(name, None)
    paths = save(result, "the results are")
    if out is not None and content is not None:
        out.write(content if isinstance(content, bytes) else content.encode())
        paths.append(out.path)
    return paths


def _settings(assignments: tuple[str, ...]) -> dict[str, Any]:
    fields = parse(assignments)
    if set(fields) - {"task"} or not isinstance(fields.get("task", {}), dict):
        raise UsageError("--set requires task.NAME=VALUE here, where NAME is a setting of the run's task.")
    return dict(fields.get("task", {}))
