"""A local Slack for dev, the demo and tests: Web API, Events API, OAuth, interactivity and a web page.

config = EmulatorConfig(signing_secret="...", bot_token="xoxb-...", request_url="http://127.0.0.1:8000/slack/events")
async with Emulator(config, environment="dev") as emulator:
    print(emulator.url)
"""

from bot.emulator.client import EmulatorClient
from bot.emulator.config import AppCommand, EmulatorConfig
from bot.emulator.emulator import Emulator
from bot.emulator.errors import ControlError, EmulatorError, PortBusyError, StateFileError, WrongEnvironmentError

__all__ = [
    "AppCommand",
    "ControlError",
    "Emulator",
    "EmulatorClient",
    "EmulatorConfig",
    "EmulatorError",
    "PortBusyError",
    "StateFileError",
    "WrongEnvironmentError",
]
