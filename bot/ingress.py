"""From an accepted request to a durable message: one statement, then the acknowledgement."""

from collections.abc import Sequence
from dataclasses import replace

import structlog

from agent.lines import Lines
from agent.loop import Agent
from agent.messages import MESSAGES, PARTS, Transcript, arrived, joins, withdrawn
from agent.models.base import Message, Person, Text
from agent.people import People
from agent.stops import Stopper
from bot.bodies import Envelope
from bot.bots import Bots
from bot.checkups import Checkups
from bot.clients import Clients, Credentials, CredentialsUnavailableError, works
from bot.events import (
    LEAVING,
    AccessRevoked,
    Changed,
    HomeOpened,
    Left,
    Said,
    Stopped,
    kind_of,
    read,
    revoked_teams,
    spoken,
    tenant_of,
)
from bot.groups import Groups
from bot.home import Home
from bot.installs import Installs
from bot.overheard import Overheard
from bot.removal import Removal
from bot.thread_commands import ThreadCommands
from workflows import Engine
from workflows.dedup import DedupCache
from workflows.storage import Delete, Insert, Select, StoreUnavailableError, Update, Write
from workflows.storage.tables import RECEIVED

LIMIT = 100_000
"""Characters of one message that are kept; Slack itself cuts at 40,000."""


class Ingress:
    """Takes events in. Raises StoreUnavailableError when one could not be made durable: Slack then delivers it again."""

    def __init__(
        self,
        engine: Engine,
        agent: Agent,
        clients: Clients,
        dedup: DedupCache,
        installs: Installs,
        *,
        removal: Removal,
        checkups: Checkups,
        commands: ThreadCommands,
        home: Home,
        people: People,
    ) -> None:
        self._engine = engine
        self._agent = agent
        self._clients = clients
        self._dedup = dedup
        self._installs = installs
        self._transcript = Transcript(engine.store)
        self._stopper = Stopper(engine, turn=agent.turn.id)
        self._removal = removal
        self._checkups = checkups
        self._commands = commands
        self._home = home
        self._people = people
        self._groups = Groups(engine.store)
        self._overheard = Overheard(engine.store)
        self._bots = Bots(engine.store)
        self._lines = Lines(engine, turn=agent.turn.id)

    async def accept(self, envelope: Envelope) -> None:
        """Take one event in. What is nothing for us leaves no trace, so that it can't consume the key of its twin."""
        tenant = tenant_of(envelope)
        me = await self._clients.credentials(tenant)
        match read(envelope, bot_user_id=me.bot_user_id, bot_id=me.bot_id):
            case Said() as said:
                await self._said(said)
            case Changed() as changed:
                await self._changed(changed)
            case Stopped() as stopped:
                await self._stop(stopped)
            case Left() as left:
                await self._left(me, left)
            case AccessRevoked(teams):
                await self._doubt(teams)
            case HomeOpened(user):
                self._home.show(tenant, user)
            case None:
                return

    async def hold(self, tenant: str, envelope: Envelope) -> None:
        """Keep what was said in a workspace nobody knows yet. The look after it meets an install that finished meanwhile.

        One whose token was lost is such a workspace, too, and it may leave for good.
        """
        if kind_of(envelope) in LEAVING:
            await self._gone(tenant)
        await self._doubt(revoked_teams(envelope))
        if spoken(envelope):
            await self._installs.keep(tenant, envelope)
            structlog.get_logger().info("event_of_unknown_workspace", tenant=tenant)
            if await self._clients.known(tenant) is not None:
                await self.replay(tenant)

    async def _gone(self, tenant: str) -> None:
        """Told again of a removal, whose first copy may have been cut off; or of one without a token to try."""
        if await self._installs.installed(tenant):
            await self._removal.complete(tenant, None)
        else:
            await self._removal.stop_work(tenant)

    async def replay(self, tenant: str) -> None:
        """After an installation: what the workspace said in the hour before is taken in now. One event that can't be keeps no other back.

        Raises StoreUnavailableError, CredentialsUnavailableError: run again, it goes on with what is left.
        """
        for event_id, envelope in (await self._installs.kept(tenant)).items():
            try:
                await self.accept(envelope)
            except (StoreUnavailableError, CredentialsUnavailableError):
                raise
            except Exception as error:
                # It stays until its hour is over: a later version may be able to read it.
                structlog.get_logger().error("kept_event_not_taken", tenant=tenant, event_id=event_id, exc_info=error)
                continue
            await self._installs.drop_kept(tenant, event_id)

    async def _said(self, said: Said) -> None:
        if said.group:  # also of a second copy: the first may be the mention, which does not tell
            await self._groups.remember(said.thread)
        key = f"message:{said.thread.channel}:{said.id}"
        if await self._dedup.done(said.thread.tenant, key):
            return
        if said.bot and not await self._bots.admits(said):
            return
        if (given := self._commands.read(said)) is not None:
            # What it should stop may hold every place of the workers: it is stopped here, and its notice is the answer.
            stops = Stopped(said.thread, said.user, said.id) if given.stops else None
            if not (await self._known(said, key) or (stops and await self._stop(stops, key))):
                await self._commands.start(self._engine, given)
            await self._dedup.mark_done(said.thread.tenant, key)
            return
        if not said.addressed and not await self._takes_part(said):
            return
        line = said.line
        if line:
            found = self._lines.underway(said.thread) if said.stop else self._lines.belongs(said.thread)
            said = replace(said, thread=await found)
        if said.stop and await self._stop(Stopped(said.thread, said.user, before(said.id)), key, guest=said.outside):
            await self._dedup.mark_done(said.thread.tenant, key)
            return
        await self._take(said, key, line=line)
        if said.addressed and (later := await self._overheard.after(said)):
            for each in later:
                await self._take(each, f"message:{each.thread.channel}:{each.id}")
            await self._overheard.drop(said.thread)
        await self._dedup.mark_done(said.thread.tenant, key)  # last: a redelivery after a crash does all of it again

    async def _known(self, said: Said, key: str) -> bool:
        """Whether it is dealt with: an earlier copy of a Stop has stopped something, or its author has deleted it since it was first sent."""
        return bool(await self._engine.store.read(Select(RECEIVED, {"tenant": said.thread.tenant, "dedup_key": key})))

    async def _takes_part(self, said: Said) -> bool:
        """Whether the agent is in the thread. If not, a reply is kept: its mention may still be on its way, or come just now."""
        if await self._transcript.takes_part(said.thread):
            return True
        if said.thread.root == said.id:
            return False
        await self._overheard.keep(said)
        return await self._transcript.takes_part(said.thread)

    async def _take(self, said: Said, key: str, *, line: bool = False) -> None:
        author = Person(
            id=said.user, name=said.user, outside=said.outside
        )  # the name is looked up when a turn takes it in
        parts = (*_texts(said.text, said.quoted), *said.files)
        message = Message(role="user", parts=parts, author=author, heard=said.elsewhere)
        outcome = await self._engine.signal_with_start(
            self._agent.turn,
            tenant=said.thread.tenant,
            key=said.thread.key,
            name="message",
            dedup_key=key,
            payload={"id": said.id, **({"line": True} if line else {})},
            writes=[arrived(said.thread, said.id, message), joins(said.thread)],
        )
        structlog.get_logger().info(
            "message_accepted", tenant=said.thread.tenant, run_id=outcome.run_id, duplicate=outcome.duplicate
        )

    async def _changed(self, changed: Changed) -> None:
        """Of a message that no turn has taken in, another text or none. Of one that was, the model is told; nothing is run again."""
        if changed.bot and not await self._bots.allowed(changed.thread.tenant, changed.bot):
            return
        await self._overheard.changed(changed)
        if changed.line:
            changed = replace(changed, thread=await self._lines.taken(changed.thread))
        where = {"tenant": changed.thread.tenant, "thread": changed.thread.key, "id": changed.id, "position": None}
        if changed.text is None:
            # A tombstone: the deletion may overtake a redelivery of what it deletes.
            gone = {"tenant": changed.thread.tenant, "dedup_key": f"message:{changed.thread.channel}:{changed.id}"}
            await self._engine.store.write(Insert(RECEIVED, gone), Delete(MESSAGES, where))
        else:
            known = (await self._transcript.get(changed.thread, [changed.id])).get(changed.id)
            if known is None:
                return
            parts = PARTS.dump_python((*_texts(changed.text, changed.quoted), *known.files), mode="json")
            await self._engine.store.write(Update(MESSAGES, where, {"parts": parts}))
        await self._tell_of(changed)

    async def _tell_of(self, changed: Changed) -> None:
        """A turn has taken the message in already: the news waits for the next boundary of this turn or the next one."""
        taken = await self._transcript.taken(changed.thread, changed.id)
        if taken is None or (taken.text, taken.quoted) == (changed.text, changed.quoted):
            return
        key = f"edit:{changed.thread.channel}:{changed.id}:{changed.at}"
        if changed.text is None:
            writes: list[Write] = [withdrawn(changed.thread, changed.id)]
        else:  # the words are in the transcript alone, where they can be forgotten
            parts = (*_texts(changed.text, changed.quoted), *taken.files)
            again = taken.model_copy(update={"parts": parts, "heard": True})
            writes = [arrived(changed.thread, key, again)]
        await self._engine.signal_with_start(
            self._agent.turn,
            tenant=changed.thread.tenant,
            key=changed.thread.key,
            name="edit",
            dedup_key=key,
            payload={"id": changed.id, "deleted": changed.text is None},
            writes=writes,
        )

    async def _doubt(self, teams: Sequence[str]) -> None:
        """An organization has taken workspaces from the app: whether one of them has it still, its own token says."""
        for team in teams:
            await self._checkups.sooner(team)

    async def _left(self, me: Credentials, left: Left) -> None:
        """Slack tells late and again, also of a removal that an installation has followed. Whether the token works decides, not clocks."""
        if await works(self._clients.client(me)):
            if left.at is None or me.installed_at is None or left.at <= me.installed_at:
                return
            raise CredentialsUnavailableError(f"Slack says that the app left {me.tenant}, and takes its token")
        await self._removal.complete(me.tenant, me.token)

    async def _stop(self, stopped: Stopped, key: str = "", *, guest: bool = False) -> bool:
        """`key`: of the message that says it. A later copy finds nothing to stop, and must not pass for a message of its own.

        A guest of a shared channel stops what they asked for themselves: the work is for those whose campaigns these are.
        """
        taken = [Insert(RECEIVED, {"tenant": stopped.thread.tenant, "dedup_key": key})] if key else []
        guest = guest or (await self._people.person(stopped.thread.tenant, stopped.user)).outside
        stop = self._stopper.stop_own if guest else self._stopper.stop
        return await stop(stopped.thread, message_id=stopped.at, by=stopped.user, and_keep=taken)


def _texts(own: str, quoted: str) -> tuple[Text, ...]:
    """What an author said, and apart from it what others did."""
    said = Text(text=own[:LIMIT])
    return (said, Text(text=quoted[:LIMIT], quoted=True)) if quoted else (said,)


def before(ts: str) -> str:
    """The timestamp right before another one, of the same length."""
    seconds, _, fraction = ts.partition(".")
    if not fraction:
        return f"{int(seconds) - 1:0>{len(seconds)}}"
    earlier = int(seconds + fraction) - 1
    digits = f"{earlier:0>{len(seconds) + len(fraction)}}"
    return f"{digits[: -len(fraction)]}.{digits[-len(fraction) :]}"
