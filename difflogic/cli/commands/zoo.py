"""`difflogic zoo`: list the circuits that come with difflogic, or show one."""

import json
from typing import Any

import click

from difflogic.cli.options import json_option
from difflogic.cli.screen import table
from difflogic.cli.screen.echo import echo


@click.command("zoo")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the circuits that come with difflogic, or show one. Each was trained or built, and proved correct.

    simulate, export, show, simplify, prove and report take their names instead of files. The columns count gates that
    read two inputs, before and after `simplify`.

    Example: difflogic zoo life
    """
    from difflogic.circuits.readers import zoo

    entries = {key: zoo.entry(key) for key in ([name] if name else zoo.names())}
    if as_json:
        echo("\n".join(json.dumps({"name": key, **entry}) for key, entry in entries.items()))
    elif name:
        echo(_shown(name, entries[name]))
    else:
        table.show(
            ("name", "what it does", "at first", "simplified"),
            [(key, what(entry), *map(str, entry["learned"]["gates"])) for key, entry in entries.items()],
            texts=True,
        )
        echo("\nShow one: difflogic zoo NAME")


def what(data: dict[str, Any]) -> str:
    """Return a phrase that describes the behaviour of the zoo circuit in `data`."""
    if "environment" in data:
        return f"acts in {data['environment']}"
    if "does" in data:
        return str(data["does"])
    if data["rule"]:
        return f"the rule {data['rule']}"
    start = "one cell" if data["circuit"]["habitat"]["start"] == "seed" else "the border"
    start = "every initial state" if data["claim"] == "every-start" else start
    steps = max(data["steps"], data["from_step"] or 0)
    return f"an image of {data['width']}x{data['height']} cells from {start} in {steps} steps"


def _shown(name: str, data: dict[str, Any]) -> str:
    from difflogic.circuits.readers import source, zoo
    from difflogic.circuits.synthesis.luts import lut_count

    before, after = data["learned"]["gates"]
    path = zoo.FOLDER / f"{name}.json"
    tables = lut_count(source.function(path) or source.load(path).netlist)
    run = "evaluate {}" if "environment" in data else "simulate {} --live"
    facts = {"Does": what(data), "Gates": f"{before} at first, {after} simplified"}
    facts |= {"Tables": f"{tables} of three inputs", "Proof": data["text"], "Made by": data["learned"]["command"]}
    facts |= {"Run it": f"difflogic {run.format(name)}"}
    return "\n".join([*data.get("target", ()), *(f"{label + ':':8} {text}" for label, text in facts.items())])
