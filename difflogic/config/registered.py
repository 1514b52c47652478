"""Tasks in Python that installed distributions register by entry points in the group `difflogic.tasks`.

    [project]
    name = "my-package"

    [project.entry-points."difflogic.tasks"]
    maze = "my_package.tasks:Maze"

registers the class `Maze` as the task `my-package:maze`. Only entry points are imported, no names from users or files.
"""

import dataclasses
import re
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any

from difflogic.config.fields import hint, shown
from difflogic.config.own_task import TASK_FIELDS, OwnTask, Task, one_line
from difflogic.config.schema import Config
from difflogic.config.task import PluginConfig
from difflogic.errors import ConfigError, FaultyTaskError

GROUP = "difflogic.tasks"
NONE: Mapping[str, Any] = MappingProxyType({})


def is_task(name: str) -> bool:
    """Return whether `name` is that of a task in Python: it contains a colon, unlike names of presets."""
    return ":" in name


def names() -> list[str]:
    """Return the sorted names of the installed tasks, without loading the tasks."""
    return sorted(_installed())


def find(name: str, settings: Mapping[str, Any] = NONE, task: Mapping[str, Any] = NONE) -> OwnTask:
    """Return the task `name` with `settings`; fields of [task] in `task` override settings of the same name.

    Raises ConfigError if the task is not installed or has no such setting, or FaultyTaskError if its code fails.
    """
    installed = _installed()
    distribution, _, own = name.rpartition(":")
    entry = installed.get(f"{_normalised(distribution)}:{own}")
    if entry is None:
        known = f"installed are {', '.join(installed)}" if installed else "none is installed"
        raise ConfigError(
            f"Unknown task {shown(name)}{hint(name, installed)}: expected DISTRIBUTION:NAME of an installed task; "
            f"{known}."
        )
    try:
        cls = entry.load()
    except (Exception, SystemExit) as error:
        raise FaultyTaskError(
            f"The task {name} could not be loaded: {type(error).__name__}: {one_line(error)}."
        ) from error
    return OwnTask(f"{_normalised(distribution)}:{own}", cls, settings, task)


def configure(source: Config | str, fields: Mapping[str, Any]) -> tuple[Config, dict[str, Any]]:
    """Return the configuration of a task, and a request's `fields` without the task's settings.

    `source` is the task's name or a configuration with that name. Samples are drawn unless the configuration contains
    their hash and no setting changes. Raises ConfigError, DataError, FaultyTaskError or LimitError.
    """
    if "plugin" in fields:
        raise ConfigError("Set the settings of a task as fields of task, such as task.size: omit plugin.")
    plugin = PluginConfig(name=source) if isinstance(source, str) else source.plugin
    # A value that is not a table is rejected when the configuration is built.
    others = {name: {**value} if isinstance(value, Mapping) else value for name, value in fields.items()}
    task, data = (others[name] if isinstance(others.get(name), dict) else {} for name in ("task", "data"))
    own = find(plugin.name, plugin.settings, task)
    for name in list(task):
        if name not in own.takes | TASK_FIELDS:
            raise ConfigError(
                f"Unknown field task.{name}{hint(name, own.takes)}: {own.name} takes "
                f"{', '.join(sorted(own.takes)) or 'no settings'} and the fields of every task."
            )
    settings, count = [task.pop(name) for name in own.takes & set(task)], data.pop("samples", None)
    if isinstance(source, str):
        return own.config(count), others
    # A hash in the configuration requires these samples; a file of `difflogic init` has no hash.
    if source.data.sha256 and not settings and count is None:
        return source, others
    samples = own.drawn(source.data.samples if count is None else count)
    return source.with_(**own.derived(samples)), others


def given(task: Task) -> OwnTask:
    """Wrap a task object; its name is the one that a distribution registers for its class, otherwise the class name."""
    cls = type(task)
    value = f"{cls.__module__}:{cls.__qualname__}"
    name = next((known for known, entry in _installed().items() if entry.value == value), cls.__name__)
    return OwnTask(name, cls, {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}, NONE)


def task_of(plugin: PluginConfig, task: Mapping[str, Any] = NONE) -> OwnTask:
    """Return the task that `plugin` names. Raises the errors of `find`, and ConfigError for an unregistered task."""
    if not is_task(plugin.name):
        raise ConfigError(
            f"The task {plugin.name} was given to a Trainer, and no installed distribution registers it: continue from "
            "Python, with Trainer(TASK, engine).run(resume=FOLDER)."
        )
    return find(plugin.name, plugin.settings, task)


def _installed() -> dict[str, EntryPoint]:
    points = [point for point in entry_points(group=GROUP) if point.dist]
    found = {f"{_normalised(point.dist.name)}:{point.name}": point for point in points if point.dist}
    return dict(sorted(found.items()))


def _normalised(distribution: str) -> str:
    """Return the name of a distribution in the form of package indexes: `My.Package` becomes `my-package`."""
    return re.sub(r"[-_.]+", "-", distribution).lower()
