"""Commands inside threads, where Slack allows no slash commands: `!report last week`. Run once, answered once, whatever dies meanwhile."""

import re
from typing import Any
from uuid import uuid5

from pydantic import BaseModel, ConfigDict

from agent.channel import DELIVERY_RETRY, Channel, Delivered
from agent.thread import Thread
from bot.commands import Command, Commands
from bot.events import Said
from bot.render.text import markdown
from workflows import Effect, Engine, FailedRun, RunState, StepContext, Workflow, step, workflow
from workflows.ids import NAMESPACE

NOTICE = "thread-command-notice"
SORRY = (
    "I could not do `!{command}`: something broke on our side. What it had done until then stands. Look before you try again, and tell an"
    " operator if it happens twice."
)

_COMMAND = re.compile(r"!(?P<name>[a-z]+)(?:\s+(?P<text>.*))?", re.DOTALL)


class Given(BaseModel):
    """A command that was given in a thread, by the message that gave it."""

    model_config = ConfigDict(frozen=True)

    thread: Thread
    message_id: str
    user: str
    name: str
    text: str

    @property
    def stops(self) -> bool:
        """Whether it is Stop."""
        return self.name == "threadline" and self.text.strip().lower() == "stop"


class Answer(BaseModel):
    """What is answered, in Markdown."""

    model_config = ConfigDict(frozen=True)

    given: Given
    text: str


class ThreadCommands:
    """Recognises commands in what is said, and runs them as workflows."""

    def __init__(self, commands: Commands, channel: Channel) -> None:
        self._commands = commands
        self._channel = channel
        answer = step(id="answer", effect=Effect.RECONCILE, reconcile=self._find, retry=DELIVERY_RETRY)(self._answer)
        running = step(id="run", effect=Effect.IDEMPOTENT)(self._run)
        self.workflow: Workflow[Given, Delivered] = (
            workflow("thread-command", on_failure=NOTICE).then(running).then(answer).commit()
        )
        apology = step(id="apologise", effect=Effect.IDEMPOTENT, retry=DELIVERY_RETRY)(self._apologise)
        self.notice: Workflow[FailedRun, Delivered] = workflow(NOTICE).then(apology).commit()

    @property
    def workflows(self) -> tuple[Workflow[Any, Any], ...]:
        """What the engine has to know."""
        return self.workflow, self.notice

    def read(self, said: Said) -> Given | None:
        """The command, if it is one. At the head of a channel only a mention makes it ours: other apps have such commands, too.

        What a stranger of a shared channel writes is talk: their commands are those of their own workspace. So is what a bot writes.
        """
        if said.outside or said.bot or (said.thread.root == said.id and not said.addressed):
            return None
        found = _COMMAND.fullmatch(said.text.strip())
        if found is None or found["name"] not in self._commands.names:
            return None
        return Given(
            thread=said.thread,
            message_id=said.id,
            user=said.user,
            name=found["name"],
            text=(found["text"] or "").strip(),
        )

    async def start(self, engine: Engine, given: Given) -> None:
        """Run it, once for its message. Raises StoreUnavailableError."""
        run_id = str(uuid5(NAMESPACE, f"command/{given.thread.tenant}/{given.thread.channel}/{given.message_id}"))
        key = f"{given.thread.key}:{given.message_id}"  # under its channel, with which it is forgotten
        await engine.start(self.workflow, given, tenant=given.thread.tenant, run_id=run_id, key=key)

    async def _run(self, given: Given, ctx: StepContext) -> Answer:
        thread = given.thread
        command = Command(
            name=given.name, text=given.text, tenant=thread.tenant, user=given.user, channel=thread.channel,
            key=given.message_id, root=thread.root,
        )  # fmt: skip
        return Answer(given=given, text=markdown(await self._commands.run(command)))

    async def _answer(self, answer: Answer, ctx: StepContext) -> Delivered:
        return await self._channel.deliver(
            answer.given.thread, answer.text, delivery_id=f"{ctx.run_id}:answer", draft=None, notes=ctx
        )

    async def _find(self, key: str, answer: Answer, ctx: StepContext) -> Delivered | None:
        return await self._channel.find(answer.given.thread, delivery_id=f"{ctx.run_id}:answer", notes=ctx)

    async def _apologise(self, failed: FailedRun, ctx: StepContext) -> Delivered:
        """Say in the thread that a command broke: unsaid, it would be given again."""
        if failed.state is RunState.CANCELLED:  # by an operator, or with all that ends when the app is removed
            return Delivered(message_ids=())
        given = Given.model_validate(failed.input)
        text = SORRY.format(command=given.name)
        return await self._channel.deliver(
            given.thread, text, delivery_id=f"{failed.run_id}:notice", draft=None, notes=ctx
        )
