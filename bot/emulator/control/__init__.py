"""The control API under /_emulator/: what tests, the demo and the page use to act as people and as the world."""

from bot.emulator.control.routes import add_control_routes

__all__ = ["add_control_routes"]
