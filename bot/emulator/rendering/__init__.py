"""Messages as HTML for the page. Everything a person or the app wrote is escaped on the way, here and nowhere else."""

from bot.emulator.rendering.blocks import blocks_html
from bot.emulator.rendering.emoji import EMOJI
from bot.emulator.rendering.message import with_html
from bot.emulator.rendering.plain import plain_text

__all__ = ["EMOJI", "blocks_html", "plain_text", "with_html"]
