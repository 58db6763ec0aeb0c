"""Every exception of the local Slack.

EmulatorError
├── WrongEnvironmentError   started outside dev and tests: ask an operator
├── PortBusyError           another program owns the port: choose another one
├── StateFileError          what was remembered can't be read: ask an operator, or begin anew
├── BadRequestError         the control API was asked for something impossible: fix the input (400)
│   └── NotFoundError       ... because the thing it names does not exist (404)
├── SlackError              a Web API call answers {"ok": false, "error": code}
└── ControlError            the control API refused a call of `EmulatorClient`
"""

from typing import Any


class EmulatorError(Exception):
    """Base of all errors of the local Slack."""


class WrongEnvironmentError(EmulatorError):
    """The local Slack trusts everyone who can reach it, so it starts in dev and tests only."""


class PortBusyError(EmulatorError):
    """Another program listens on the port."""


class StateFileError(EmulatorError):
    """The file that a local Slack remembers everything in is broken, or of another version."""


class BadRequestError(EmulatorError):
    """The control API can not do what it was asked; the text is the sentence the caller is shown."""

    status = 400


class NotFoundError(BadRequestError):
    """The control API was given the name of something that does not exist."""

    status = 404


class SlackError(EmulatorError):
    """A Web API failure: `code` is Slack's error string, `extra` the other fields of the answer."""

    def __init__(self, code: str, **extra: Any) -> None:
        super().__init__(code)
        self.code = code
        self.extra = extra


class ControlError(EmulatorError):
    """The control API refused a request; `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{message} (HTTP {status})")
        self.status = status
