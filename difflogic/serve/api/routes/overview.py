"""What is told over all jobs: where those that wait stand, and which tags there are."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from difflogic.serve.api.context import ALWAYS, CurrentCaller, ServiceContext, errors, reply
from difflogic.serve.api.replies import OwnerList, QueueReply, TagList
from difflogic.serve.api.words import turn_words
from difflogic.serve.store.jobs import ID

router = APIRouter(tags=["jobs"])


@router.get("/queue", response_model=QueueReply, responses=errors(*ALWAYS))
def queue(
    context: ServiceContext,
    caller: CurrentCaller,
    ids: Annotated[
        str | None, Query(pattern=f"^{ID.pattern}(,{ID.pattern}){{0,199}}$", description="Only these jobs.")
    ] = None,
) -> Any:
    """Where your jobs that wait stand: their turns among everybody's."""
    wanted = None if ids is None else ids.split(",")
    turns = context.turns().values()
    shown = [each for each in turns if caller.sees in (None, each.owner) and (wanted is None or each.id in wanted)]
    return reply({"waiting": [{"id": each.id, "turn": turn_words(each)} for each in shown]})


@router.get("/tags", response_model=TagList, responses=errors(*ALWAYS))
def tags(context: ServiceContext, caller: CurrentCaller) -> Any:
    """The tags that your jobs have, by name."""
    return reply({"tags": [{"tag": tag, "jobs": jobs} for tag, jobs in context.store.tags(caller.sees).items()]})


@router.get("/owners", response_model=OwnerList, responses=errors(*ALWAYS))
def owners(context: ServiceContext, caller: CurrentCaller) -> Any:
    """How many jobs you have and what they take; for an operator those of everybody who has jobs."""
    jobs: dict[str, dict[str, int]] = {caller.owner: {}} | context.store.counts_by_owner(caller.sees)
    taken, quota = context.usage.bytes(), context.settings.caps.owner_quota
    found = [{"owner": each, "jobs": jobs[each], "bytes": taken.get(each, 0), "quota": quota} for each in sorted(jobs)]
    return reply({"owners": found})
