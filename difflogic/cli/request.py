"""Requests for training from a command's options and arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from difflogic.config.request import TRAIN_FIELDS, SweepRequest, TrainRequest, options
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.config.customise import Configured
    from difflogic.config.dataset import Dataset
    from difflogic.config.policy import PolicyConfig
    from difflogic.config.schema import Config

Asked = TypeVar("Asked", bound=TrainRequest)
OF_ACTIONS = ("seed", "steps", "from_start", "task", "every_start", "formats", "film_rule", "film_frames")
"""Other options that messages name."""
OF_AGENTS = ("algorithm", "policy", "steps")
"""Options that automata do not have."""
OF_AUTOMATA = ("from_film", "placement", "devices", "max_memory", *TRAIN_FIELDS)
"""Options that agents do not have, in addition to those that a request declares."""
DEPTH = 3
"""Most names of a field's path: model.update.widths."""


_WRITTEN = {
    "preset": "PRESET",
    "environment": "ENVIRONMENT",
    "config": "--config",
    "config_file": "--config",
    "set": "--set",
    "assignments": "--set",
    "asynchronous": "--async",
    "tags": "--tag",
    "formats": "--format",
}


def written(name: str) -> str:
    """Return an option or an argument as users write it."""
    return _WRITTEN.get(name, "--" + name.replace("_", "-"))


def in_options(sentence: str) -> str:
    """Write the fields of a request in a sentence as options: `until_solved` is --until-solved."""
    of_requests = [each.name for part in (TrainRequest, SweepRequest) for each in options(part)]
    known = {*of_requests, *TRAIN_FIELDS, *OF_ACTIONS}
    return re.sub("`([a-z_]+)`", lambda found: written(found[1]) if found[1] in known else found[0], sentence)


def requested(of: type[Asked], given: Mapping[str, Any], config: Config | None = None, **others: Any) -> Asked:
    """Return the request of a command's options; `config` replaces PRESET or `--config`, and `others` the options."""
    asked = said(given, of)
    if given.get("data") is not None or given.get("from_film") is not None:
        asked["data"] = _samples(given)
        if given.get("from_film") is not None:
            asked.pop("size", None)  # that of the film
    if config is None and given.get("config_file") is not None:
        from difflogic.config.schema import Config

        config = Config.load(given["config_file"])
    fields = _fields(given)
    if "data" in asked and config is None and asked.get("preset") is None:
        from difflogic.config.customise import named

        fields.setdefault("name", named(given["data"] or given["from_film"]))
    return of(**asked | {"config": config, "set": fields} | others)


def said(given: Mapping[str, Any], part: type = TrainRequest) -> dict[str, Any]:
    """Return the given options of a command that belong to a request, or to a part of one."""
    found = {each.name: each for each in options(part)}
    named = {name: value for name, value in given.items() if name in found}
    return {name: int(value) if found[name].kind is int else value
            for name, value in named.items() if not (value in (None, ()) or value is found[name].default)}  # fmt: skip


def _samples(given: Mapping[str, Any]) -> Dataset:
    from difflogic.circuits import recorded
    from difflogic.config import dataset

    film, size = given.get("from_film"), given.get("size")
    of_film = {"--film-rule": given.get("film_rule"), "--film-frames": given.get("film_frames")}
    if film is None:
        if said_of_film := [name for name, value in of_film.items() if value is not None]:
            raise UsageError(f"{said_of_film[0]} is about a film: give --from-film FILE with it.")
        return dataset.load(given["data"])
    if given.get("data") is not None:
        raise UsageError("There can be only one task: give --data or --from-film, not both.")
    return recorded.samples(film, given.get("film_rule"), given.get("film_frames"), size and (size[1], size[0]))


def axes(over: Sequence[str]) -> dict[str, str]:
    """Return the fields of `--over` with their values. Raises UsageError."""
    found: dict[str, str] = {}
    for each in over:
        path, equals, text = each.partition("=")
        if not equals or not path.strip():
            raise UsageError(
                f"--over takes FIELD=VALUES, say optimizer.lr=0.02:0.2:log or seed=0..31, got {each[:200]!r}."
            )
        if path.strip() in found:
            raise UsageError("--over has a field twice: give all its values at once.")
        found[path.strip()] = text
    return found


def agents(
    given: Mapping[str, Any], preset: str | None, environment: PolicyConfig | None = None
) -> PolicyConfig | None:
    """Return the configuration of agents that PRESET or `--config` names, with fields changed, or None for automata.

    `environment` is trained if PRESET is the name of an environment. Raises UsageError for options of the other kind,
    ConfigError.
    """
    from difflogic.config import agent_presets, document, policy

    file, base = given.get("config_file"), environment
    if preset in agent_presets.PRESETS and file is None:
        base = agent_presets.PRESETS[preset]
    elif base is None and preset is None and file is not None and document.is_policy(data := document.read(file)):
        base = policy.PolicyConfig.from_dict(data)
    if base is not None:
        TrainRequest(**said(given)).check_kind(of_agents=True)
    kind, what, others = ("agents", "automata", OF_AGENTS) if base is None else ("automata", "agents", OF_AUTOMATA)
    if wrong := [written(name) for name in others if given.get(name) is not None]:
        raise UsageError(f"{wrong[0]} is for {kind}, and this trains {what}: drop it.")
    own = {name: given[name] for name in ("seed", *OF_AGENTS) if given.get(name) is not None}
    return None if base is None else base.with_(**parse(given["assignments"]) | own)


def changes(made: Configured[Any]) -> str:
    """Return sentences on what another target or start changed in the configuration, and on images."""
    found, notices = list(_differences(made)), map(in_options, made.notices)
    return "\n".join([*([f"Settings changed to fit: {', '.join(found)}"] if found else []), *notices])


def limit(made: Configured[TrainRequest]) -> str:
    """Return a sentence on the epochs of a training that may stop before the last; empty if only a signal stops it."""
    from difflogic.train.run_request import resolved

    request, _ = resolved(made.request, made.config)
    if request.recipe == "paper" or not request.restarts:
        return ""
    batch = ({"batch": made.base.train.batch} | made.request.set.get("train", {}))["batch"]
    return (
        f"{made.config.train.epochs} epochs are the limit: training stops at the first solution. --recipe paper trains "
        f"all of them, with batch {batch}."
    )


def _differences(made: Configured[Any]) -> Iterator[str]:
    for section, changed in made.changes.items():
        for name in changed:
            before, after = (getattr(getattr(each, section), name) for each in (made.base, made.config))
            if before != after:
                yield f"{section}.{name} {_short(before)} -> {_short(after)}"


def _short(value: Any) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        return f"of {len(value[0])}x{len(value)} cells"
    if isinstance(value, tuple | str):
        return "(none)" if not value else value if isinstance(value, str) else str(list(value))
    return str(value).lower()


def _fields(given: Mapping[str, Any]) -> dict[str, Any]:
    asked = parse(given.get("assignments", ()))
    if given.get("seed") is not None:
        asked["seed"] = given["seed"]
    if isinstance(asked.setdefault("train", {}), dict):  # else it is refused when the configuration is built
        asked["train"] |= {name: given[name] for name in TRAIN_FIELDS if given.get(name) is not None}
    return asked


def parse(assignments: Sequence[str]) -> dict[str, Any]:
    """Return the values of `--set`, nested like fields; the last one counts. Raises UsageError."""
    from difflogic.config.document import toml_value
    from difflogic.config.fields import merged, nested, shown

    data: dict[str, Any] = {}
    for each in assignments:
        path, equals, text = each.partition("=")
        names = path.strip().split(".")
        if not equals or not all(names) or len(names) > DEPTH:
            raise UsageError(f"--set takes SECTION.FIELD=VALUE, say optimizer.lr=0.06, got {shown(each)}.")
        data = merged(data, nested(path.strip(), toml_value(text, "--set")))
    return data
