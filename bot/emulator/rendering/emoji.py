"""Emoji by Slack's names: the few that agents and their readers use."""

import re

EMOJI = {
    "+1": "👍", "-1": "👎", "thumbsup": "👍", "thumbsdown": "👎", "eyes": "👀", "white_check_mark": "✅",
    "heavy_check_mark": "✔️", "x": "❌", "warning": "⚠️", "tada": "🎉", "rocket": "🚀", "fire": "🔥", "heart": "❤️",
    "raised_hands": "🙌", "pray": "🙏", "clap": "👏", "thinking_face": "🤔", "wave": "👋", "smile": "😄",
    "slightly_smiling_face": "🙂", "joy": "😂", "hourglass": "⌛", "hourglass_flowing_sand": "⏳", "stopwatch": "⏱️",
    "chart_with_upwards_trend": "📈", "chart_with_downwards_trend": "📉", "bar_chart": "📊", "moneybag": "💰",
    "money_with_wings": "💸", "email": "📧", "memo": "📝", "bulb": "💡", "mag": "🔍", "lock": "🔒", "key": "🔑",
    "calendar": "📅", "spiral_calendar_pad": "🗓️", "bell": "🔔", "no_bell": "🔕", "robot_face": "🤖", "gear": "⚙️",
    "pause_button": "⏸️", "double_vertical_bar": "⏸️", "arrow_forward": "▶️", "octagonal_sign": "🛑",
    "information_source": "\u2139\ufe0f", "question": "❓", "exclamation": "❗", "star": "⭐", "sparkles": "✨", "100": "💯",
    "large_green_circle": "🟢", "large_yellow_circle": "🟡", "red_circle": "🔴", "arrow_up": "⬆️", "arrow_down": "⬇️",
    "no_entry": "⛔", "no_entry_sign": "🚫", "heavy_exclamation_mark": "❗", "rotating_light": "🚨", "construction": "🚧",
    "hourglass_done": "⌛", "alarm_clock": "⏰", "clock1": "🕐", "repeat": "🔁", "arrows_counterclockwise": "🔄", "unlock": "🔓",
    "ok_hand": "👌", "ok": "🆗", "muscle": "💪", "point_right": "👉", "point_up": "☝️", "cry": "😢", "sweat_smile": "😅", "grin": "😁",
    "heavy_multiplication_x": "✖️", "ballot_box_with_check": "☑️",
    "arrow_right": "➡️", "arrow_left": "⬅️", "arrow_upper_right": "↗️", "arrow_lower_right": "↘️", "white_circle": "⚪",
    "large_blue_circle": "🔵", "large_orange_circle": "🟠", "black_circle": "⚫", "dart": "🎯", "trophy": "🏆", "euro": "💶",
    "dollar": "💵", "credit_card": "💳", "incoming_envelope": "📨", "envelope": "✉️", "clipboard": "📋", "pushpin": "📌",
    "date": "📅", "zap": "⚡", "hammer_and_wrench": "🛠️", "wrench": "🔧", "mega": "📣", "loudspeaker": "📢", "tent": "⛺",
    "page_facing_up": "📄", "paperclip": "📎", "link": "🔗", "speech_balloon": "💬", "coffee": "☕", "seedling": "🌱",
}  # fmt: skip

_NAME = re.compile(r":([a-z0-9_+-]+):")


def with_emoji(text: str) -> str:
    """`text` with the names it knows replaced; ``10:30:00`` and unknown names stay."""
    return _NAME.sub(lambda match: EMOJI.get(match[1], match[0]), text)
