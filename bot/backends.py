"""What the settings choose: where things are stored, what tells of them, which model answers, whose tokens are used."""

from collections.abc import Iterable
from pathlib import Path

from agent.models import can_see, make_model
from agent.models.base import Model
from agent.schema import AGENT
from bot.clients import CredentialSource
from bot.credentials import EitherSource, Met, OneWorkspace
from bot.installs import Installs
from bot.keyring import Keyring, KeyringError
from bot.render.pacing import MemoryPacer, Pacer, RedisPacer
from bot.schema import BOT
from bot.settings import Settings, SettingsError
from workflows.dedup import DedupCache, MemoryDedupCache, RedisDedupCache
from workflows.pubsub import MemoryPubSub, PubSub, RedisPubSub
from workflows.storage import PostgresStore, Schema, SqliteStore, Store
from workflows.tracing import SpanSink
from workflows.tracing.otel import OtelSink

TABLES: tuple[Schema, ...] = (AGENT, BOT)
"""What the floors above the engine store, with the migrations that led there."""


def make_store(settings: Settings) -> Store:
    """PostgreSQL where DATABASE_URL names one, else the embedded SQLite file. Raises SettingsError."""
    if settings.database_url.startswith(("postgres://", "postgresql://")):
        return PostgresStore(settings.database_url, tables=TABLES)
    if settings.database_url:
        raise SettingsError(
            "DATABASE_URL must begin with postgresql://, such as postgresql://user@host/threadline; only ./dev run does without one"
        )
    settings.make_data_dir()
    return SqliteStore(settings.sqlite_path, tables=TABLES)


def make_pubsub(settings: Settings) -> PubSub:
    """Redis Streams where REDIS_URL names a server, else this process alone."""
    return RedisPubSub(settings.redis_url, settings.redis_prefix) if settings.redis_url else MemoryPubSub()


def make_exporters(settings: Settings) -> tuple[SpanSink, ...]:
    """OpenTelemetry where its collector is named. Raises SettingsError if the extra is not installed."""
    if not settings.otlp_endpoint:
        return ()
    attributes = {"threadline.deployment": settings.deployment} if settings.deployment else None
    try:
        return (OtelSink(endpoint=f"{settings.otlp_endpoint.rstrip('/')}/v1/traces", attributes=attributes),)
    except ImportError as error:
        raise SettingsError(f"OTEL_EXPORTER_OTLP_ENDPOINT is set, but {error}") from None


def make_dedup(settings: Settings) -> DedupCache:
    """Shared by replicas where there is a Redis."""
    return RedisDedupCache(settings.redis_url, settings.redis_prefix) if settings.redis_url else MemoryDedupCache()


def make_pacer(settings: Settings) -> Pacer:
    """Shared by replicas where there is a Redis."""
    return RedisPacer(settings.redis_url, settings.redis_prefix) if settings.redis_url else MemoryPacer()


def make_keyring(settings: Settings) -> Keyring:
    """The keys of the settings, else of the data directory's file. Raises SettingsError."""
    keys, path = settings.encryption_keys.get_secret_value(), Path(settings.data_dir) / "encryption.key"
    try:
        return Keyring.parse(keys) if keys else Keyring.of_file(path)
    except KeyringError as error:
        raise SettingsError(f"{'THREADLINE_ENCRYPTION_KEYS' if keys else path}: {error}") from None


def make_credentials(settings: Settings, installs: Installs, *, met: Met) -> CredentialSource:
    """What was installed, else the one workspace of the settings, of which `met` is told."""
    token = settings.slack_bot_token.get_secret_value()
    sources: Iterable[CredentialSource] = (
        (OneWorkspace(token, api_url=settings.slack_api_url, met=met),) if token else ()
    )
    return EitherSource(installs, *sources)


def chosen_model(settings: Settings) -> Model:
    """The provider and model of the settings. Raises SettingsError."""
    try:
        return make_model(
            settings.model,
            anthropic_api_key=settings.anthropic_api_key.get_secret_value() or None,
            anthropic_base_url=settings.anthropic_base_url or None,
            openai_api_key=settings.openai_api_key.get_secret_value() or None,
            openai_base_url=settings.openai_base_url or None,
        )
    except ValueError as error:
        raise SettingsError(str(error)) from None


def model_sees(settings: Settings) -> bool:
    """Whether the model takes images, as far as its name tells, unless the settings say so."""
    if settings.model_sees is not None:
        return settings.model_sees
    return can_see(settings.model.strip(), openai_base_url=settings.openai_base_url)
