"""`difflogic init`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from difflogic.cli import target
from difflogic.errors import ConfigError, DifflogicError


@click.command("init")
@click.argument("name", metavar="PRESET")
@click.option("-o", "--out", type=target.FILE, metavar="FILE", help="Where to write it [PRESET.toml].")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@target.set_option
@target.target_options
def command(name: str, out: Path | None, force: bool, **options: Any) -> None:
    """Write a preset's configuration as a TOML file in which every field is explained, to change and train.

    Example: difflogic init lizard -o mine.toml
    """
    from difflogic.config_text import commented
    from difflogic.files import write_atomically

    path = out or Path(f"{name}.toml")
    config, told = target.configured({"preset": name, "config_file": None, **options})
    if path.is_dir():
        raise ConfigError(f"{path} is a folder: give the name of a file with -o.")
    if path.exists() and not force:
        raise ConfigError(f"{path} is there already: give another name with -o, or --force to replace it.")
    opening = f"The preset {name} of difflogic, to be changed at will. Train it with: difflogic train --config {path}"
    try:
        write_atomically(path, commented(config, opening).encode())
    except OSError as error:
        raise DifflogicError(f"Cannot write {path}: {error.strerror or error}.") from error
    if told:
        click.echo(told)
    click.echo(f"Wrote {path}: train it with difflogic train --config {path}")
