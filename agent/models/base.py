"""The seam to a language model: one canonical conversation, one stream of events, one tree of errors."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Person(_Frozen):
    """Who wrote a message: Slack user id, display name, IANA time zone. `outside`: of another company, in a channel shared with it."""

    id: str
    name: str
    time_zone: str = "UTC"
    outside: bool = False


SYSTEM = Person(id="system", name="system")
"""Who speaks in notices."""
DELETED = "(deleted by its author)"
"""What stands in the place of a message whose author took it back."""


class Text(_Frozen):
    """Plain text or Markdown. `quoted`: somebody else's words, forwarded or quoted with a message. They are data, and ask for nothing."""

    kind: Literal["text"] = "text"
    text: str
    quoted: bool = False


class File(_Frozen):
    """A file somebody shared, by reference: its id, its name, its media type and its size in bytes. A tool reads it."""

    kind: Literal["file"] = "file"
    id: str
    name: str
    media_type: str = ""
    size: int = 0


class ToolCall(_Frozen):
    """The model asks for a tool. `arguments` is what the model sent; it has not been validated yet."""

    kind: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class Image(_Frozen):
    """A picture for a model that can see. `media_type`: one of PNG, JPEG, GIF and WebP."""

    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    data: bytes = Field(repr=False)


class ToolResult(_Frozen):
    """What a tool answered, as JSON text, or why it could not. Every ToolCall is followed by one, in the next message.

    `image`: the picture it speaks of. It is put in for one request, and never stored.
    """

    kind: Literal["tool_result"] = "tool_result"
    call_id: str
    name: str
    content: str
    is_error: bool = False
    image: Image | None = Field(default=None, exclude=True, repr=False)


Part = Annotated[Text | File | ToolCall | ToolResult, Field(discriminator="kind")]


class Message(_Frozen):
    """One message. Users' messages carry their author; `tool` messages hold only ToolResults.

    `notice` marks what the system itself tells the model (an approval was granted, with its result), as role user. `heard` marks what
    was said in the thread, but not to the agent: before it came, or to somebody else. It is context, and no request.
    """

    role: Literal["user", "assistant", "tool"]
    parts: tuple[Part, ...]
    author: Person | None = None
    notice: bool = False
    heard: bool = False

    @property
    def text(self) -> str:
        """The text parts, joined: what its author said, without what they quote."""
        return "".join(part.text for part in self.parts if isinstance(part, Text) and not part.quoted)

    @property
    def quoted(self) -> str:
        """Somebody else's words in it."""
        return "".join(part.text for part in self.parts if isinstance(part, Text) and part.quoted)

    @property
    def files(self) -> tuple[File, ...]:
        """The files that came with it."""
        return tuple(part for part in self.parts if isinstance(part, File))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls in it, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


class ToolSchema(_Frozen):
    """A tool as the model sees it; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


class ModelRequest(_Frozen):
    """One call. `messages` is the thread window, oldest first. `now` is aware UTC."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    max_tokens: int = 8192
    now: datetime


class Usage(_Frozen):
    """Tokens of one call, as the provider counted them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


class TextDelta(_Frozen):
    """The next piece of the answer's text."""

    text: str


class Finished(_Frozen):
    """The end of a stream: the whole assistant message, why it stopped, and what it cost."""

    message: Message
    stop: Literal["end", "tool_calls", "max_tokens", "refusal"]
    usage: Usage = Usage()
    model: str = ""


ModelEvent = TextDelta | Finished


class Model(Protocol):
    """A language model. `stream` yields TextDeltas, then exactly one Finished; it raises only ModelErrors."""

    name: str

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Make one call. Closing the iterator cancels it."""
        ...

    async def close(self) -> None:
        """Free its connections."""
        ...


class ModelError(Exception):
    """Base of what a model call may raise; the bases below are named for what the caller can do."""


class ModelUnavailableError(ModelError):
    """Try again, not sooner than `retry_after_s` seconds: overload, rate limit, time-out, connection lost."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelRequestError(ModelError):
    """The request itself is refused (too long, malformed): trying it again gives the same answer."""


class ModelAccessError(ModelError):
    """An operator must act: bad key, no credit, unknown model."""
