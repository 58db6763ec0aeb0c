"""Language models: one canonical conversation, one stream of events, one tree of errors, any provider."""

from agent.models.anthropic import AnthropicModel
from agent.models.base import (
    File,
    Finished,
    Image,
    Message,
    Model,
    ModelAccessError,
    ModelError,
    ModelEvent,
    ModelRequest,
    ModelRequestError,
    ModelUnavailableError,
    Part,
    Person,
    Text,
    TextDelta,
    ToolCall,
    ToolResult,
    ToolSchema,
    Usage,
)
from agent.models.factory import can_see, make_model
from agent.models.openai import OpenAIModel

__all__ = [
    "AnthropicModel",
    "File",
    "Finished",
    "Image",
    "Message",
    "Model",
    "ModelAccessError",
    "ModelError",
    "ModelEvent",
    "ModelRequest",
    "ModelRequestError",
    "ModelUnavailableError",
    "OpenAIModel",
    "Part",
    "Person",
    "Text",
    "TextDelta",
    "ToolCall",
    "ToolResult",
    "ToolSchema",
    "Usage",
    "can_see",
    "make_model",
]
