"""A word to whoever installed the app: what it does, and how to begin. Once per person and workspace, also over a reinstall."""

from typing import Any
from uuid import uuid5

from pydantic import BaseModel, ConfigDict

from agent.channel import DELIVERY_RETRY, Delivered
from agent.thread import Thread
from bot.render import SlackChannel
from bot.render.text import quoted
from workflows import Effect, Engine, StepContext, Workflow, step, workflow
from workflows.ids import NAMESPACE

WORDS = (
    "**Threadline is now in {place}.** I manage ad campaigns, write email copy and report on performance.\n\n"
    "- Write to me here, or invite me to a channel with `/invite` and mention me there.\n"
    "- `/report` makes a report, and `/summaries every monday 9:00` posts one to a channel every week.\n"
    "- What spends money or can't be undone is shown to an admin first, and is done only when it was approved.\n\n"
    "My answers are made by a language model and may be wrong. Begin with “What can you do?”"
)


class Installed(BaseModel):
    """Who installed the app, and the name of where."""

    model_config = ConfigDict(frozen=True)

    installer: str
    place: str


class Greeting(BaseModel):
    """Where the words go, and which."""

    model_config = ConfigDict(frozen=True)

    channel: str
    text: str


class Welcome:
    """The workflow, and what starts it."""

    def __init__(self, engine: Engine, channel: SlackChannel) -> None:
        self._engine = engine
        self.workflow = _make(channel)

    async def greet(self, tenant: str, *, installer: str, place: str) -> None:
        """Greet whoever installed. Raises StoreUnavailableError."""
        run_id = str(uuid5(NAMESPACE, f"welcome/{tenant}/{installer}"))
        await self._engine.start(
            self.workflow, Installed(installer=installer, place=place), tenant=tenant, run_id=run_id
        )


def _make(channel: SlackChannel) -> Workflow[Installed, Any]:
    async def open_conversation(installed: Installed, ctx: StepContext) -> Greeting:
        opened = await channel.conversation(ctx.tenant, installed.installer)
        return Greeting(channel=opened, text=WORDS.format(place=quoted(installed.place)))

    async def greet(greeting: Greeting, ctx: StepContext) -> Delivered:
        thread = Thread(tenant=ctx.tenant, channel=greeting.channel, root="")
        return await channel.deliver(thread, greeting.text, delivery_id=f"{ctx.run_id}:welcome", draft=None, notes=ctx)

    async def find(key: str, greeting: Greeting, ctx: StepContext) -> Delivered | None:
        thread = Thread(tenant=ctx.tenant, channel=greeting.channel, root="")
        return await channel.find(thread, delivery_id=f"{ctx.run_id}:welcome", notes=ctx)

    opening = step(id="open", effect=Effect.IDEMPOTENT, retry=DELIVERY_RETRY)(open_conversation)
    greeting = step(id="greet", effect=Effect.RECONCILE, reconcile=find, retry=DELIVERY_RETRY)(greet)
    return workflow("welcome").then(opening).then(greeting).commit()
