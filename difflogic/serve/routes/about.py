"""What the server is and has: devices, presets, limits."""

from __future__ import annotations

import functools
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from difflogic import presets as known
from difflogic.memory import free_memory, physical_memory
from difflogic.serve import told
from difflogic.serve.context import ALWAYS, Asks, Here, errors, reply
from difflogic.serve.cost import cost_of
from difflogic.serve.schemas import DeviceList, FieldList, FormatList, LimitsReply, PresetList

router = APIRouter(tags=["server"])


@router.get("/devices", response_model=DeviceList, responses=errors(*ALWAYS))
def devices(here: Here, asks: Asks) -> Any:
    """The workers: what they compute on, and what they do."""
    mine = here.store.running(asks.owner)
    workers = [vars(each) | {"job": each.job if each.job in mine else None} for each in here.store.workers()]
    return reply(
        {"devices": workers, "now": here.store.clock(), "memory": physical_memory(), "free_memory": free_memory()}
    )


@router.get("/presets", response_model=PresetList, responses=errors(*ALWAYS))
def presets(_asks: Asks) -> Any:
    """What can be trained by name."""
    return reply({"presets": _presets()})


@functools.cache
def _presets() -> list[dict[str, Any]]:
    found = []
    for name, preset in known.PRESETS.items():
        config = preset.make()
        found.append({"name": name, "about": preset.about, "config": config.to_dict(), "gates": config.model.gates,
                      "cost": cost_of(config, 1).to_dict()})  # fmt: skip
    return found


@router.get("/fields", response_model=FieldList, responses=errors(*ALWAYS))
def fields(_asks: Asks) -> Any:
    """The fields of a configuration: what each is for, and which values it takes."""
    return reply({"fields": told.fields()})


@router.get("/formats", response_model=FormatList, responses=errors(*ALWAYS))
def formats(_asks: Asks) -> Any:
    """What a circuit can be exported to."""
    return reply({"formats": told.formats()})


@router.get("/limits", response_model=LimitsReply, responses=errors(*ALWAYS))
def limits(here: Here, _asks: Asks) -> Any:
    """The most that a job or an upload may ask for."""
    caps = asdict(here.settings.caps)
    return reply({name: caps[name] for name in LimitsReply.model_fields})
