"""Conversion of a command's options and arguments to requests for training."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from difflogic.config.request import TRAIN_FIELDS, SweepRequest, TrainRequest, options
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from difflogic.config.customise import Configured
    from difflogic.config.dataset import Dataset
    from difflogic.config.policy import PolicyConfig
    from difflogic.config.schema import Config

AnyRequest = TypeVar("AnyRequest", bound=TrainRequest)
OF_ACTIONS = ("seed", "steps", "from_start", "task", "every_start", "formats", "film_rule", "film_frames")
"""Options of commands other than `train` that messages may mention."""
OF_AGENTS = ("algorithm", "policy", "steps")
"""Options that do not apply to automata."""
OF_AUTOMATA = ("from_recording", "placement", "devices", "max_memory", *TRAIN_FIELDS)
"""Options that do not apply to agents, in addition to those that a request declares as such."""
DEPTH = 3
"""Maximum number of names in the path of a field, such as model.update.widths."""
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
    "film_rule": "--recording-rule",
    "film_frames": "--frames",
}
"""Mapping from fields to options and arguments with different names."""


def written(name: str) -> str:
    """Return the option or argument of a field, as users write it on the command line."""
    return _WRITTEN.get(name, "--" + name.replace("_", "-"))


def in_options(sentence: str) -> str:
    """Replace fields in backticks in a sentence by command-line options: `until_solved` becomes --until-solved."""
    of_requests = [option.name for part in (TrainRequest, SweepRequest) for option in options(part)]
    names = {*of_requests, *TRAIN_FIELDS, *OF_ACTIONS}
    return re.sub("`([a-z_]+)`", lambda match: written(match[1]) if match[1] in names else match[0], sentence)


def requested(
    kind: type[AnyRequest], given: Mapping[str, Any], config: Config | None = None, **others: Any
) -> AnyRequest:
    """Make a request of the class `kind` from options; `config` replaces `--config`, and `others` replace fields."""
    fields, samples = request_fields(given, kind), given.get("from_recording") or given.get("data")
    if samples is not None:
        fields["data"] = _samples(given, samples)
        if given.get("from_recording") is not None:
            fields.pop("size", None)  # it is the size of the recording's grid
    if config is None and given.get("config_file") is not None:
        from difflogic.config.schema import Config

        config = Config.load(given["config_file"])
    changes = _changed_fields(given)
    if samples is not None and config is None and fields.get("preset") is None:
        from difflogic.config.customise import named

        changes.setdefault("name", named(samples))
    return kind(**fields | {"config": config, "set": changes} | others)


def request_fields(given: Mapping[str, Any], part: type = TrainRequest) -> dict[str, Any]:
    """Return the options in `given` that are fields of the request class `part` and differ from their defaults."""
    declared = {option.name: option for option in options(part)}
    return {name: int(value) if declared[name].kind is int else value for name, value in given.items()
            if name in declared and value not in (None, ()) and value is not declared[name].default}  # fmt: skip


def _samples(given: Mapping[str, Any], file: Path) -> Dataset:
    from difflogic.circuits import recorded
    from difflogic.config import dataset

    rule, frames, size = given.get("film_rule"), given.get("film_frames"), given.get("size")
    if given.get("from_recording") is None:
        if rule is not None or frames is not None:
            name = written("film_frames" if rule is None else "film_rule")
            raise UsageError(f"{name} requires --from-recording FILE.")
        return dataset.load(file)
    if given.get("data") is not None:
        raise UsageError("--data and --from-recording cannot be used together: give one of them.")
    return recorded.samples(file, rule, frames, size and (size[1], size[0]))


def axes(over: Sequence[str]) -> dict[str, str]:
    """Return a mapping from fields to the texts of their values, as in `--over FIELD=VALUES`. Raises UsageError."""
    values: dict[str, str] = {}
    for axis in over:
        path, equals, text = axis.partition("=")
        if not equals or not path.strip():
            raise UsageError(
                f"--over requires FIELD=VALUES, such as optimizer.lr=0.02:0.2:log or seed=0..31, got {axis[:99]!r}."
            )
        if path.strip() in values:
            raise UsageError(f"--over has the field {path.strip()} twice: give all of its values in one --over.")
        values[path.strip()] = text
    return values


def agents(
    given: Mapping[str, Any], preset: str | None, environment: PolicyConfig | None = None
) -> PolicyConfig | None:
    """Return the configuration of agents from PRESET or `--config`, changed by options, or None for automata.

    `environment` is the configuration if PRESET names an environment. Raises ConfigError, or UsageError for options
    that are for automata only, or for agents only.
    """
    from difflogic.config import agent_presets, document, policy

    file, base = given.get("config_file"), environment
    if preset in agent_presets.PRESETS and file is None:
        base = agent_presets.PRESETS[preset]
    elif base is None and preset is None and file is not None and document.is_policy(data := document.read(file)):
        base = policy.PolicyConfig.from_dict(data)
    if base is not None:
        TrainRequest(**request_fields(given)).check_kind(of_agents=True)
    other, kind, names = ("agents", "automata", OF_AGENTS) if base is None else ("automata", "agents", OF_AUTOMATA)
    if wrong := [written(name) for name in names if given.get(name) is not None]:
        raise UsageError(f"{wrong[0]} is for {other}, but this trains {kind}: omit it.")
    own = {name: given[name] for name in ("seed", *OF_AGENTS) if given.get(name) is not None}
    return None if base is None else base.with_(**parse(given["assignments"]) | own)


def changes(configured: Configured[Any]) -> str:
    """Return text about the fields that a new target or initial state changed, and how images were converted."""
    differences, notices = list(_differences(configured)), map(in_options, configured.notices)
    return "\n".join([*([f"Settings changed to fit: {', '.join(differences)}"] if differences else []), *notices])


def limit(configured: Configured[TrainRequest]) -> str:
    """Return a sentence about the limit of epochs if training stops at the first solution, otherwise ""."""
    from difflogic.train.run_request import resolved

    request, _ = resolved(configured.request, configured.config)
    if request.recipe == "paper" or not request.restarts:
        return ""
    batch = ({"batch": configured.base.train.batch} | configured.request.set.get("train", {}))["batch"]
    return (
        f"Training stops at the first solution, or after {configured.config.train.epochs} epochs. --recipe paper "
        f"trains all of these epochs, with batch {batch}."
    )


def _differences(configured: Configured[Any]) -> Iterator[str]:
    for section, changed in configured.changes.items():
        for name in changed:
            before, after = (getattr(getattr(part, section), name) for part in (configured.base, configured.config))
            if before != after:
                yield f"{section}.{name} {_short(before)} -> {_short(after)}"


def _short(value: Any) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        return f"of {len(value[0])}x{len(value)} cells"
    if isinstance(value, tuple | str):
        return "(none)" if not value else value if isinstance(value, str) else str(list(value))
    return str(value).lower()


def _changed_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    fields = parse(given.get("assignments", ()))
    if given.get("seed") is not None:
        fields["seed"] = given["seed"]
    if isinstance(fields.setdefault("train", {}), dict):  # else it is refused when the configuration is built
        fields["train"] |= {name: given[name] for name in TRAIN_FIELDS if given.get(name) is not None}
    return fields


def parse(assignments: Sequence[str]) -> dict[str, Any]:
    """Parse the assignments of `--set` into nested fields; a field's last value is used. Raises UsageError."""
    from difflogic.config.document import toml_value
    from difflogic.config.fields import merged, nested, shown

    data: dict[str, Any] = {}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        names = path.strip().split(".")
        if not equals or not all(names) or len(names) > DEPTH:
            raise UsageError(f"--set requires SECTION.FIELD=VALUE, such as optimizer.lr=0.06, got {shown(assignment)}.")
        data = merged(data, nested(path.strip(), toml_value(text, "--set")))
    return data
