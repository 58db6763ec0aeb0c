"""Encryption at rest: AES-256-GCM under a ring of keys. Tenant and column are associated data, so a value can't be moved to another row."""

import base64
import contextlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VERSION = "v1"
NONCE_BYTES = 12
KEY_BYTES = 32


class KeyringError(Exception):
    """Keys that can't be used, or a value that none of them opens; an operator must act."""


class Keyring:
    """Keys by id; the first seals, all open. The text form is `id:base64,id:base64`."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        if not keys:
            raise KeyringError("there is no encryption key")
        for key_id, key in keys.items():
            if len(key) != KEY_BYTES or not key_id.isalnum():
                raise KeyringError(
                    f"encryption key {key_id!r} must have an alphanumeric id and {KEY_BYTES} bytes, and has {len(key)}"
                )
        self._keys = dict(keys)
        self.current = next(iter(keys))
        """The id of the key that seals."""

    @classmethod
    def parse(cls, text: str) -> "Keyring":
        """A ring from its text form. Raises KeyringError, which never quotes a key."""
        keys: dict[str, bytes] = {}
        for number, part in enumerate(filter(None, (each.strip() for each in text.split(","))), 1):
            key_id, separator, encoded = part.partition(":")
            if not separator:
                raise KeyringError(f"encryption key number {number} has no id; write it as id:key, such as 2026a:…")
            if key_id in keys:
                raise KeyringError(f"encryption key id {key_id!r} is there twice; each key needs its own")
            try:
                keys[key_id] = base64.b64decode(encoded, validate=True)
            except ValueError:
                raise KeyringError(
                    f"encryption key number {number} is not base64; make one with: openssl rand -base64 32"
                ) from None
        return cls(keys)

    @classmethod
    def of_file(cls, path: Path) -> "Keyring":
        """The ring of a development data directory, made at first use and readable only by its owner."""
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _make_key(path)
        return cls.parse(path.read_text())

    def seal(self, text: str, *, tenant: str, column: str) -> str:
        """`v1.<key id>.<base64 of nonce and ciphertext>`."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = AESGCM(self._keys[self.current]).encrypt(nonce, text.encode(), _associated(tenant, column))
        return f"{VERSION}.{self.current}.{base64.b64encode(nonce + sealed).decode()}"

    def is_current(self, sealed: str) -> bool:
        """Whether a value was sealed with the key that seals now."""
        return sealed.startswith(f"{VERSION}.{self.current}.")

    def open(self, sealed: str, *, tenant: str, column: str) -> str:
        """The text. Raises KeyringError if its key is gone, or if it was sealed for another tenant or column, or changed."""
        version, _, rest = sealed.partition(".")
        key_id, _, encoded = rest.partition(".")
        key = self._keys.get(key_id)
        if version != VERSION or key is None:
            raise KeyringError(
                f"{column} of {tenant} was sealed with key {key_id!r}, which is not in THREADLINE_ENCRYPTION_KEYS"
            )
        try:
            data = base64.b64decode(encoded, validate=True)
            return AESGCM(key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], _associated(tenant, column)).decode()
        except (InvalidTag, ValueError):
            raise KeyringError(
                f"{column} of {tenant} can't be opened: it was changed, or sealed for another row"
            ) from None


def _make_key(path: Path) -> None:
    """Two processes that begin at once get one key: the file appears with its content, or was there first."""
    own = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    handle = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"dev:{base64.b64encode(os.urandom(KEY_BYTES)).decode()}")
        with contextlib.suppress(FileExistsError):
            os.link(own, path)
    finally:
        own.unlink()


def _associated(tenant: str, column: str) -> bytes:
    return f"{tenant}\x00{column}".encode()
