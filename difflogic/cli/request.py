"""A command's options and arguments become a request for training."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from difflogic.config.request import TrainRequest
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.config.customise import Configured
    from difflogic.config.dataset import Dataset
    from difflogic.config.policy import PolicyConfig
    from difflogic.config.schema import Config

TRAIN_FIELDS = ("epochs", "batch", "eval_interval", "precision")
"""Options that are fields of `train`; `seed` is one of the whole."""

DEPTH = 3
"""Names of a field's path at most: model.update.widths."""


def written(name: str) -> str:
    """An option or an argument as users write it."""
    known = {"preset": "PRESET", "environment": "ENVIRONMENT", "config_file": "--config", "assignments": "--set"}
    known |= {"asynchronous": "--async"}
    return known.get(name, "--" + name.replace("_", "-"))


def train_request(options: Mapping[str, Any], config: Config | None = None, **others: Any) -> TrainRequest:
    """Return what a command's options ask for; `config` replaces PRESET or `--config`, and `others` the options.

    Raises ConfigError, UsageError.
    """
    # Options have the names of the request's fields, so that none has to be passed on by hand; tests hold both to it.
    names = {each.name for each in fields(TrainRequest)}
    given = {name: value for name, value in options.items() if name in names and value is not None}
    if given.get("colors") is not None:
        given["colors"] = int(given["colors"])
    if given.get("data") is not None or options.get("from_film") is not None:
        given["data"] = _samples(options)
        if options.get("from_film") is not None:
            given.pop("size", None)  # that of the film
    if options.get("config_file") is not None:
        from difflogic.config.schema import Config

        config = Config.load(options["config_file"])
    return TrainRequest(**given | {"config": config, "fields": _fields(options)} | others)


def _samples(options: Mapping[str, Any]) -> Dataset:
    """The samples that `--data` or `--from-film` name. Raises UsageError, LimitError."""
    from difflogic.circuits import recorded
    from difflogic.config import dataset

    film, size = options.get("from_film"), options.get("size")
    of_film = {"--film-rule": options.get("film_rule"), "--film-frames": options.get("film_frames")}
    if film is None:
        if given := [name for name, value in of_film.items() if value is not None]:
            raise UsageError(f"{given[0]} is about a film: give --from-film FILE with it.")
        return dataset.load(options["data"])
    if options.get("data") is not None:
        raise UsageError("There can be only one task: give --data or --from-film, not both.")
    return recorded.samples(film, options.get("film_rule"), options.get("film_frames"), size and (size[1], size[0]))


def check_source(options: Mapping[str, Any]) -> None:
    """Raises UsageError unless there is one thing to train: PRESET or `--config`, or samples alone."""
    named = [options["preset"], options["config_file"]].count(None)
    # Samples may be the whole task: then there is a circuit that is made for them.
    if named == 0 or (named == 2 and options["data"] is None and options["from_film"] is None):
        raise UsageError(
            "Say what to train: the name of a preset, as `difflogic presets` lists them, or --config FILE."
        )


OF_AUTOMATA = (
    "target", "rule", "rule_table", "start", "colors", "size", "threshold", "padding", "recipe", "epochs", "batch",
    "eval_interval", "precision", "restarts",
)  # fmt: skip
"""Options that mean nothing where agents are trained."""


def agents(options: Mapping[str, Any], preset: str | None) -> PolicyConfig | None:
    """The configuration of agents that PRESET or `--config` names, with fields changed; None where it names automata.

    Raises UsageError for options of automata, ConfigError.
    """
    from difflogic.config import agent_presets, document, policy

    file = options.get("config_file")
    if preset in agent_presets.PRESETS and file is None:
        base = agent_presets.PRESETS[preset]
    elif preset is None and file is not None and document.is_policy(document.peek(file)):
        base = policy.PolicyConfig.load(file)
    else:
        return None
    # As click gives them where an option was left out: None, False, or 0 for a padding.
    given = [name for name in OF_AUTOMATA if options.get(name) not in (None, False, 0)]
    if given:
        raise UsageError(
            f"{written(given[0])} is for automata, and {base.name} trains agents: drop it; --set changes fields."
        )
    seed = {} if options.get("seed") is None else {"seed": options["seed"]}
    return base.with_(**parse(options["assignments"]) | seed)


def work(options: Mapping[str, Any]) -> Config:
    """Return what `work_options` name: a preset, a file or, by default, the checkerboard; with fields changed.

    Raises UsageError where they are named twice, ConfigError.
    """
    from difflogic.config import presets
    from difflogic.config.customise import configure

    named = options["preset"] is not None, options["config_file"] is not None, options["small"]
    if sum(named) > 1:
        raise UsageError("Only one thing can be trained: give a PRESET, --config FILE or --small, not several.")
    # Without a name it is the paper's checkerboard.
    board = None if any(named[:2]) else presets.checkerboard(options["small"])
    return configure(train_request(options, board)).config


def changes(made: Configured) -> str:
    """A sentence on what another target or start changed in the configuration; empty where nothing."""
    found = list(_differences(made))
    return f"Settings changed to fit: {', '.join(found)}" if found else ""


def _differences(made: Configured) -> Iterator[str]:
    for section, changed in made.changes.items():
        for name in changed:
            # What a target sets to the value that it had anyway is no change.
            before, after = (getattr(getattr(each, section), name) for each in (made.base, made.config))
            if before != after:
                yield f"{section}.{name} {_short(before)} -> {_short(after)}"


def _short(value: Any) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        return f"of {len(value[0])}x{len(value)} cells"
    if isinstance(value, tuple | str):
        return "(none)" if not value else value if isinstance(value, str) else str(list(value))
    return str(value).lower()


def _fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """All fields that options ask for, at once, since some go only together: one by its own option counts.

    Raises UsageError.
    """
    asked = parse(options.get("assignments", ()))
    if options.get("seed") is not None:
        asked["seed"] = options["seed"]
    if isinstance(asked.setdefault("train", {}), dict):  # else it is refused where the configuration is built
        asked["train"] |= {name: options[name] for name in TRAIN_FIELDS if options.get(name) is not None}
    return asked


def parse(assignments: Sequence[str]) -> dict[str, Any]:
    """The values of `--set`, nested as fields are; of two for one field the last counts. Raises UsageError."""
    from difflogic.config.fields import merged, nested, shown

    data: dict[str, Any] = {}
    for each in assignments:
        path, equals, text = each.partition("=")
        names = path.strip().split(".")
        if not equals or not all(names) or len(names) > DEPTH:
            raise UsageError(f"--set takes SECTION.FIELD=VALUE, say optimizer.lr=0.06, got {shown(each)}.")
        data = merged(data, nested(path.strip(), _value(text)))
    return data


def _value(text: str) -> Any:
    """A value as TOML writes it; what is not TOML is text, since shells strip quotes. Raises UsageError."""
    try:
        data = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        # `--set task.start=zeros`: in TOML a text has quotes, which the shell has eaten.
        return text.strip()
    except RecursionError as error:
        raise UsageError("--set takes a value, got lists or tables that are nested too deeply.") from error
    # The text held a line break and a second assignment, which TOML reads as another field.
    if len(data) > 1:
        more = ", ".join(name for name in data if name != "value")
        raise UsageError(f"--set takes one value, but another field or table follows, {more}: give each its own.")
    return data["value"]
