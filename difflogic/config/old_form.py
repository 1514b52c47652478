"""The form that configurations had before `format = 2`, and the one place that still reads it.

    old                       new
    [train]                   format = 2
    epochs = 500              [train]
    lr = 0.06                 epochs = 500
    hardening = 0.8           [optimizer]
                              lr = 0.06
                              [hardening]
                              share = 0.8

Files, checkpoints, `restarts.json` and jobs that were kept in the old form, which has no `format`, are read for ever.
What is asked for anew is answered with the new name.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from difflogic.config.document import POLICY
from difflogic.config.fields import shown
from difflogic.errors import ConfigError
from difflogic.system.cache import warn

FORMAT = 2
"""Of the configurations that are written."""

MOVED = {
    **{name: ("optimizer", name) for name in ("lr", "weight_decay", "beta1", "beta2", "epsilon", "clip", "clip_by")},
    "lr_end": ("schedule", "share"),
    "lr_from": ("schedule", "begin"),
    "lr_to": ("schedule", "end"),
    "initial_logit": ("initial", "logit"),
    "narrow_drop": ("initial", "narrow_drop"),
    "logit_noise": ("initial", "noise"),
    "hardening": ("hardening", "share"),
    "harden_from": ("hardening", "begin"),
    "harden_to": ("hardening", "end"),
    "growth_until": ("growth", "until"),
    "growth_sides": ("growth", "sides"),
    "growth_steps": ("growth", "steps"),
    "settle_from": ("search", "begin"),
    "pool": ("pool", "size"),
    "pool_reset": ("pool", "reset"),
}
"""Where each field went that was one of `[train]`."""


def current(data: Any) -> Any:
    """A configuration's plain data in today's form, without its `format`. Raises ConfigError.

    What has no `format` may be of either form; what says that it is of today's form must be. What is no table at all is
    refused where a configuration is built of it.
    """
    if not isinstance(data, dict):
        return data
    data = dict(data)
    if data.get("kind") == POLICY:
        raise ConfigError("This is the configuration of an agent: `difflogic train-policy` takes it.")
    written = data.pop("format", None)
    if written is None:
        return moved(data)
    if type(written) is not int or written != FORMAT:
        raise ConfigError(
            f"The configuration is of format {shown(written)}, but this difflogic reads format {FORMAT}: use the "
            "version that wrote it."
        )
    for name in _old_names(data):
        raise ConfigError(f"train.{name} is now called {'.'.join(MOVED[name])}.")
    return data


def moved(data: Mapping[str, Any]) -> dict[str, Any]:
    """Fields with those of the old form in their new places, which is said once. Raises ConfigError for two of one."""
    found = dict(data)
    # `train.pool = 4` becomes `pool.size = 4`; what else is in either table stays where it is.
    for name in _old_names(data):
        section, field = MOVED[name]
        inside = found.get(section, {})
        if not isinstance(inside, dict) or field in inside:
            raise ConfigError(f"train.{name} is now called {section}.{field}, which is given too: leave out the first.")
        found[section] = {**inside, field: data["train"][name]}
        found["train"] = {key: value for key, value in found["train"].items() if key != name}
        _notice()
    return found


def _old_names(data: Mapping[str, Any]) -> list[str]:
    train = data.get("train")
    return [name for name in train if name in MOVED] if isinstance(train, dict) else []


@functools.cache
def _notice() -> None:
    warn(
        "a configuration of an earlier version was read under today's names of its fields: `difflogic init` writes "
        "a file with all of them."
    )
