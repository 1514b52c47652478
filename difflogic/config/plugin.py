"""`[plugin]`: the task in Python that draws the samples, by its name, its version and its settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from difflogic.config.fields import Section, Table, spec


@dataclass(frozen=True, repr=False)
class PluginConfig(Section):
    """Whose samples are learned; everything else of a run follows from them and the other sections."""

    path = "plugin."

    name: str = field(
        default="",
        metadata=spec(
            "The task in Python that draws the samples, DISTRIBUTION:NAME by its entry point; empty: --data gives them"
        ),
    )
    version: str = field(default="", metadata=spec("The task's own version"))
    settings: Table = field(
        default=Table(), metadata=spec("The task's own settings, of which those that are left out are its defaults")
    )
