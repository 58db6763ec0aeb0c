"""Settings, all from the environment. A wrong one is one plain sentence, before anything is started."""

from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

Environment = Literal["production", "dev", "test"]


HTTP = ("http://", "https://")
URLS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "REDIS_URL": ("redis_url", ("redis://", "rediss://", "unix://"), "redis://, rediss:// or unix://; leave it empty for the embedded bus"),
    "OTEL_EXPORTER_OTLP_ENDPOINT": ("otlp_endpoint", HTTP, "http:// or https://; spans go there over OTLP/HTTP"),
    "SLACK_API_URL": ("slack_api_url", HTTP, "https:// (or http:// for a local Slack)"),
    "THREADLINE_PUBLIC_URL": ("public_url", HTTP, "https://; admins are sent there, and Slack back"),
    "ANTHROPIC_BASE_URL": ("anthropic_base_url", HTTP, "https:// (or http:// for a local server)"),
    "OPENAI_BASE_URL": ("openai_base_url", HTTP, "https:// (or http:// for a local server)"),
}  # fmt: skip
"""Addresses: the field, how one may begin, and that in words. Empty ones are not used."""


class SettingsError(Exception):
    """Settings that can't work; the message names each and says what to do."""


class Settings(BaseSettings):
    """What a process is told. Times are in seconds."""

    model_config = SettingsConfigDict(extra="ignore", populate_by_name=True)

    environment: Environment = Field("production", alias="THREADLINE_ENV")
    database_url: str = Field("", alias="DATABASE_URL")
    redis_url: str = Field("", alias="REDIS_URL")
    data_dir: str = Field(".threadline", alias="THREADLINE_DATA_DIR")
    slack_signing_secret: SecretStr = Field(SecretStr(""), alias="SLACK_SIGNING_SECRET")
    slack_client_id: str = Field("", alias="SLACK_CLIENT_ID")
    slack_client_secret: SecretStr = Field(SecretStr(""), alias="SLACK_CLIENT_SECRET")
    slack_bot_token: SecretStr = Field(SecretStr(""), alias="SLACK_BOT_TOKEN")
    slack_app_token: SecretStr = Field(SecretStr(""), alias="SLACK_APP_TOKEN")
    socket_connections: int = Field(2, alias="THREADLINE_SOCKET_CONNECTIONS", ge=1, le=10)
    socket_ping_s: float = Field(5.0, alias="THREADLINE_SOCKET_PING_S", gt=0, le=60)
    slack_api_url: str = Field("https://slack.com/api/", alias="SLACK_API_URL")
    model: str = Field("offline", alias="THREADLINE_MODEL")
    anthropic_api_key: SecretStr = Field(SecretStr(""), alias="ANTHROPIC_API_KEY")
    anthropic_base_url: str = Field("", alias="ANTHROPIC_BASE_URL")
    openai_api_key: SecretStr = Field(SecretStr(""), alias="OPENAI_API_KEY")
    openai_base_url: str = Field("", alias="OPENAI_BASE_URL")
    model_sees: bool | None = Field(None, alias="THREADLINE_MODEL_SEES")
    public_url: str = Field("", alias="THREADLINE_PUBLIC_URL")
    encryption_keys: SecretStr = Field(SecretStr(""), alias="THREADLINE_ENCRYPTION_KEYS")
    host: str = Field("127.0.0.1", alias="HOST")
    port: int = Field(8080, alias="PORT", ge=0, le=65535)
    lease_s: float = Field(10.0, alias="THREADLINE_LEASE_S", gt=0, le=600)
    beat_s: float | None = Field(None, alias="THREADLINE_BEAT_S", gt=0)
    poll_s: float = Field(1.0, alias="THREADLINE_POLL_S", gt=0, le=60)
    concurrency: int = Field(10, alias="THREADLINE_CONCURRENCY", ge=1, le=1000)
    tenant_concurrency: int | None = Field(None, alias="THREADLINE_TENANT_CONCURRENCY", ge=1)
    grace_s: float = Field(5.0, alias="THREADLINE_GRACE_S", ge=0, le=25)
    deployment: str = Field("", alias="THREADLINE_DEPLOYMENT")
    retention_days: float = Field(90.0, alias="THREADLINE_RETENTION_DAYS", ge=1)
    departed_days: float = Field(30.0, alias="THREADLINE_DEPARTED_RETENTION_DAYS", ge=0)
    data_region: str = Field("", alias="THREADLINE_DATA_REGION")
    support_email: str = Field("", alias="THREADLINE_SUPPORT_EMAIL", pattern=r"^([^\s@<>]+@[^\s@<>]+)?$")
    redis_prefix: str = Field("threadline", alias="THREADLINE_REDIS_PREFIX")
    delivery_deadline_s: float = Field(8.0, alias="THREADLINE_DELIVERY_DEADLINE_S", gt=0, le=60)
    tool_activity: Literal["status", "cards"] = Field("status", alias="THREADLINE_TOOL_ACTIVITY")
    otlp_endpoint: str = Field("", alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", alias="THREADLINE_LOG_LEVEL")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not self.slack_api_url.endswith("/"):
            self.slack_api_url += "/"
        self._check_urls()
        self._check_work()
        self._check_slack()
        if self.environment == "production":
            self._check_needed()
        return self

    def _check_urls(self) -> None:
        urls = {name: str(getattr(self, field)) for name, (field, _, _) in URLS.items()}
        for name, url in {"DATABASE_URL": self.database_url, **urls}.items():
            _check_url(name, url)
        for name, (_, schemes, words) in URLS.items():
            if urls[name] and not urls[name].startswith(schemes):
                raise ValueError(f"{name} must begin with {words}")

    def _check_work(self) -> None:
        if self.beat_s is not None and self.beat_s >= self.lease_s:
            raise ValueError(
                "THREADLINE_BEAT_S must be shorter than THREADLINE_LEASE_S, or every worker loses its runs"
            )
        if self.tenant_concurrency is not None and self.tenant_concurrency > self.concurrency:
            raise ValueError("THREADLINE_TENANT_CONCURRENCY is more than THREADLINE_CONCURRENCY, which is all there is")

    def _check_slack(self) -> None:
        self._check_token()
        if bool(self.slack_client_id) != bool(self.slack_client_secret.get_secret_value()):
            raise ValueError("SLACK_CLIENT_ID and SLACK_CLIENT_SECRET go together: set both or neither")
        app_token = self.slack_app_token.get_secret_value()
        if app_token and not app_token.startswith("xapp-"):
            raise ValueError("SLACK_APP_TOKEN must be an app-level token, which begins with xapp-")

    def _check_token(self) -> None:
        token = self.slack_bot_token.get_secret_value()
        if token.startswith("xoxe."):
            raise ValueError(
                "SLACK_BOT_TOKEN is one that expires; leave it empty, and install by SLACK_CLIENT_ID and SLACK_CLIENT_SECRET"
            )
        if token and not token.startswith("xoxb-"):
            raise ValueError("SLACK_BOT_TOKEN is no bot token: they begin with xoxb-")

    def _check_needed(self) -> None:
        """What a production process can't do without. Raises ValueError."""
        missing = [name for name, value in self._needed().items() if not value]
        if missing:
            raise ValueError(f"not set: {'; '.join(missing)}. For development, use ./dev run, which needs none of them")

    def _needed(self) -> dict[str, str]:
        """Names of settings, in words, to what they are set to."""
        secret, app_token = self.slack_signing_secret.get_secret_value(), self.slack_app_token.get_secret_value()
        by_oauth = self.slack_client_id and self.slack_client_secret.get_secret_value()
        needed = {
            "SLACK_SIGNING_SECRET (or SLACK_APP_TOKEN for Socket Mode)": secret or app_token,
            "SLACK_BOT_TOKEN (one workspace) or SLACK_CLIENT_ID and SLACK_CLIENT_SECRET (many)": self.slack_bot_token.get_secret_value()
            or by_oauth,
            "DATABASE_URL": self.database_url,
        }
        if self.slack_client_id:
            keys = self.encryption_keys.get_secret_value()
            needed["THREADLINE_ENCRYPTION_KEYS (tokens of workspaces are stored encrypted)"] = keys
        return needed

    def make_data_dir(self) -> Path:
        """The data directory, made if it is not there. Raises SettingsError."""
        directory = Path(self.data_dir)
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = "a file has that name" if isinstance(error, FileExistsError) else error.strerror
            raise SettingsError(
                f"the data directory {directory} can't be made: {reason}. Set THREADLINE_DATA_DIR to one that can"
            ) from None
        return directory

    @property
    def install_url(self) -> str:
        """Where an admin installs the app; empty where it is not installed by OAuth, or nobody said where this is."""
        return f"{self.public_url.rstrip('/')}/slack/install" if self.public_url and self.slack_client_id else ""

    @property
    def sqlite_path(self) -> str:
        """The embedded store's file."""
        return f"{self.data_dir}/threadline.db"


class OperatorSettings(Settings):
    """What an operator's commands are told: they talk to the database and the bus, and to nobody else."""

    def _needed(self) -> dict[str, str]:
        return {"DATABASE_URL": self.database_url}


def _check_url(name: str, url: str) -> None:
    try:
        urlsplit(url).port  # noqa: B018 — reading it checks it
    except ValueError as error:
        raise ValueError(f"{name} is no URL: {error}") from None


def load_settings(**overrides: object) -> Settings:
    """Settings of a process that serves, from the environment. Raises SettingsError."""
    return _loaded(Settings, overrides)


def load_operator_settings() -> Settings:
    """Settings of an operator's command, from the environment. Raises SettingsError."""
    return _loaded(OperatorSettings, {})


def _loaded(kind: type[Settings], overrides: dict[str, Any]) -> Settings:
    try:
        return kind(**overrides)
    except ValidationError as error:
        problems = "; ".join(_problem(each) for each in error.errors())
        raise SettingsError(problems) from None


def _problem(found: ErrorDetails) -> str:
    """One wrong setting in words. What was given is not repeated: it may be a secret in the wrong place."""
    if found["type"] == "value_error":
        return found["msg"].removeprefix("Value error, ")
    name = ": ".join(map(str, found["loc"]))
    if found["type"] in ("int_parsing", "int_from_float", "float_parsing"):
        return f"{name} must be a number"
    return f"{name}: {found['msg'].replace('Input should be', 'must be')}"
