"""The Web API: one module per family of methods, each with its table `METHODS`."""

from bot.emulator.api.dispatcher import METHODS, answer

__all__ = ["METHODS", "answer"]
