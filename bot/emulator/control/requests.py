"""The bodies of the control API."""

from typing import Any, Literal, TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.emulator.errors import BadRequestError
from bot.emulator.faults import FaultKind
from bot.emulator.sockets import Trouble
from bot.emulator.workspace import Posting

Model = TypeVar("Model", bound=BaseModel)


class Body(BaseModel):
    """An unknown field is refused: a misspelt option must not be silently without effect."""

    model_config = ConfigDict(extra="forbid")


class NewFile(Body):
    name: str
    content_base64: str


class NewMessage(Body):
    channel: str
    user: str
    text: str = ""
    thread_ts: str | None = None
    broadcast: bool = False
    files: list[NewFile] = []


class MessageChange(Body):
    channel: str
    ts: str
    user: str
    text: str = ""


class Reaction(Body):
    channel: str
    ts: str
    user: str
    name: str = Field(pattern=r"^[a-z0-9_+'-]+$")


class Click(Body):
    channel: str
    message_ts: str
    action_id: str
    user: str
    value: str | None = None


class Command(Body):
    channel: str
    user: str
    command: str = Field(pattern="^/")
    text: str = ""


class Stop(Body):
    channel: str
    thread_ts: str
    user: str


class Group(Body):
    """`people` besides `user`; the app is always one of them."""

    user: str
    people: list[str] = Field(min_length=1, max_length=8)


class Member(Body):
    channel: str
    user: str


class Home(Body):
    """`beside` is the channel at whose side the app's pane stands; empty when it has the page to itself."""

    user: str
    tab: Literal["home", "messages"] = "messages"
    beside: str = ""


class Context(Body):
    user: str
    beside: str = ""


class Unfurl(Body):
    channel: str
    ts: str
    title: str = "A preview"


class NewPerson(Body):
    """Somebody who joins the workspace `team`; `timezone` is an IANA name."""

    team: str = ""
    handle: str = Field(pattern=r"^[a-z0-9._-]{1,21}$")
    real_name: str = Field(min_length=1, max_length=80)
    timezone: str = "Etc/UTC"
    title: str = ""
    is_admin: bool = False


class NewChannel(Body):
    """A channel that `user` makes and is the first member of."""

    user: str
    name: str = Field(pattern=r"^[\w-]{1,80}$")
    private: bool = False
    topic: str = ""
    members: list[str] = []


class ChannelChange(Body):
    """What an admin sets; what is left out stays."""

    channel: str
    is_archived: bool | None = None
    posting: Posting | None = None
    lock_thread: str = ""


class Removal(Body):
    """`user`, if given, has to be an admin. `order` names the event that is sent first."""

    team: str = ""
    user: str = ""
    tell: bool = True
    order: Literal["", "app_uninstalled", "tokens_revoked"] = ""


class Submission(Body):
    user: str
    view_id: str
    values: dict[str, dict[str, str | list[str]]] = {}


class ViewClick(Body):
    user: str
    view_id: str
    action_id: str


class RawEvent(Body):
    """`event` is one inner event or several. `order` reversed sends the last first; `copies` sends each so often."""

    event: dict[str, Any] | list[dict[str, Any]]
    event_id: str | None = None
    copies: int = Field(default=1, ge=1, le=100)
    order: Literal["given", "reversed"] = "given"
    team: str = ""


class Advance(Body):
    advance_s: float = Field(ge=0)


class FaultOrder(Body):
    method: str = Field(min_length=1)
    kind: FaultKind
    times: int = Field(default=1, ge=1)
    error: str = "internal_error"
    retry_after: int = Field(default=1, ge=0)
    delay_s: float = Field(default=1.0, ge=0)


class FaultTake(Body):
    method: str


class SocketTrouble(Body):
    """`id` empty: all connections."""

    kind: Trouble
    id: str = ""


class Configuration(Body):
    request_url: str | list[str]


async def body(request: web.Request, model: type[Model]) -> Model:
    """The request's JSON as `model`. Raises BadRequestError with a sentence that names the field."""
    try:
        return model.model_validate_json(await request.text() or "{}")
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadRequestError(f"{where}: {first['msg']}." if where else f"The body is wrong: {first['msg']}.") from None
    except UnicodeDecodeError:
        raise BadRequestError("The body is not UTF-8 text.") from None
