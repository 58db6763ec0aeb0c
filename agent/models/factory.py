"""Which model a setting means."""

from agent.models.anthropic import AnthropicModel
from agent.models.base import Model
from agent.models.openai import OpenAIModel


def can_see(spec: str, *, openai_base_url: str | None = None) -> bool:
    """Whether the model of a setting takes images: Anthropic's do, and OpenAI's own; of compatible servers nobody knows, and most don't."""
    return spec.startswith("anthropic:") or (spec.startswith("openai:") and not openai_base_url)


def make_model(
    spec: str,
    *,
    anthropic_api_key: str | None = None,
    anthropic_base_url: str | None = None,
    openai_api_key: str | None = None,
    openai_base_url: str | None = None,
) -> Model:
    """The model that `THREADLINE_MODEL` names: "offline", "anthropic:<model>" or "openai:<model>".

    A compatible endpoint may need no key, so an OpenAI key is only asked for without a base URL. Raises ValueError for any other
    name and for a missing key.
    """
    provider, _, model = spec.strip().partition(":")
    if provider == "offline" and not model:
        from agent.models.offline import OfflineModel

        return OfflineModel()
    if provider == "anthropic" and model:
        if not anthropic_api_key:
            raise ValueError(f"THREADLINE_MODEL is {spec!r}, but ANTHROPIC_API_KEY is not set")
        return AnthropicModel(model, api_key=anthropic_api_key, base_url=anthropic_base_url)
    if provider == "openai" and model:
        if not openai_api_key and not openai_base_url:
            raise ValueError(f"THREADLINE_MODEL is {spec!r}, but neither OPENAI_API_KEY nor OPENAI_BASE_URL is set")
        return OpenAIModel(model, api_key=openai_api_key or "none", base_url=openai_base_url)
    raise ValueError(f"THREADLINE_MODEL is {spec!r}, but it must be 'offline', 'anthropic:<model>' or 'openai:<model>'")
