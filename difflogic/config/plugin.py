"""`[plugin]`: the task in Python that draws the samples, by its name, its version and its settings."""

from __future__ import annotations

from difflogic.config.fields import Section, Table, field, section


@section
class PluginConfig(Section):
    """Whose samples are learned; everything else of a run follows from them and the other sections."""

    path = "plugin."

    name: str = field(
        "The task in Python that draws the samples, DISTRIBUTION:NAME by its entry point; empty: --data gives them",
        default="",
    )
    version: str = field("The task's own version", default="")
    settings: Table = field(
        "The task's own settings, of which those that are left out are its defaults", default=Table()
    )
