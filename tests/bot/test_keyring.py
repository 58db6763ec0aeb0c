"""Encryption at rest: rotation, tampering, and values that belong to one row."""

import base64
import contextlib
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.keyring import Keyring, KeyringError

OLD, NEW = b"o" * 32, b"n" * 32
TOKEN = "xoxb-secret"


def text_form(**keys: bytes) -> str:
    return ",".join(f"{name}:{base64.b64encode(key).decode()}" for name, key in keys.items())


def test_what_is_sealed_opens_again_and_shows_nothing() -> None:
    ring = Keyring({"a": OLD})
    sealed = ring.seal(TOKEN, tenant="T1", column="token")
    assert TOKEN not in sealed
    assert sealed.startswith("v1.a.")
    assert sealed != ring.seal(TOKEN, tenant="T1", column="token"), "each seal has its own nonce"
    assert ring.open(sealed, tenant="T1", column="token") == TOKEN


def test_rotation_opens_the_old_and_seals_with_the_new() -> None:
    sealed = Keyring({"old": OLD}).seal(TOKEN, tenant="T1", column="token")
    ring = Keyring.parse(text_form(new=NEW, old=OLD))
    assert ring.open(sealed, tenant="T1", column="token") == TOKEN
    assert ring.seal(TOKEN, tenant="T1", column="token").startswith("v1.new.")
    with pytest.raises(KeyringError, match="sealed with key 'old', which is not in THREADLINE_ENCRYPTION_KEYS"):
        Keyring({"new": NEW}).open(sealed, tenant="T1", column="token")


@pytest.mark.parametrize("tenant, column", [("T2", "token"), ("T1", "other"), ("T1\x00token", "")])
def test_a_value_can_not_be_moved_to_another_row_or_column(tenant: str, column: str) -> None:
    ring = Keyring({"a": OLD})
    sealed = ring.seal(TOKEN, tenant="T1", column="token")
    with pytest.raises(KeyringError, match="changed, or sealed for another row"):
        ring.open(sealed, tenant=tenant, column=column)


@given(at=st.integers(0, 200), character=st.characters(codec="ascii"))
def test_a_changed_value_is_refused_and_never_misread(at: int, character: str) -> None:
    ring = Keyring({"a": OLD})
    sealed = ring.seal(TOKEN, tenant="T1", column="token")
    at %= len(sealed)
    changed = sealed[:at] + character + sealed[at + 1 :]
    with contextlib.suppress(KeyringError):
        assert ring.open(changed, tenant="T1", column="token") == TOKEN
        assert changed == sealed or base64.b64decode(changed.split(".")[2]) == base64.b64decode(sealed.split(".")[2])


@pytest.mark.parametrize("sealed", ["", "v1", "v1.a", "v1.a.", "v1.a.####", "v1.a.QUJD", "v2.a.QUJD", "plain text"])
def test_what_was_never_sealed_is_refused(sealed: str) -> None:
    with pytest.raises(KeyringError):
        Keyring({"a": OLD}).open(sealed, tenant="T1", column="token")


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "there is no encryption key"),
        (" , ", "there is no encryption key"),
        (base64.b64encode(OLD).decode(), "number 1 has no id"),
        ("a:not base64!", "number 1 is not base64"),
        (text_form(a=OLD) + ",b:\N{EURO SIGN}", "number 2 is not base64"),
        ("a:c2hvcnQ=", "32 bytes, and has 5"),
        (text_form(a=OLD) + "," + text_form(a=NEW), "'a' is there twice"),
        ("a.b:" + base64.b64encode(OLD).decode(), "alphanumeric"),
    ],
)
def test_keys_that_can_not_be_used_are_told_without_being_shown(text: str, words: str) -> None:
    with pytest.raises(KeyringError, match=words) as caught:
        Keyring.parse(text)
    assert base64.b64encode(OLD).decode()[:12] not in str(caught.value)


def test_the_development_key_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "encryption.key"
    sealed = Keyring.of_file(path).seal(TOKEN, tenant="T1", column="token")
    assert Keyring.of_file(path).open(sealed, tenant="T1", column="token") == TOKEN
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_processes_that_begin_at_once_have_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has looked, and seen no file."""
    path = tmp_path / "encryption.key"
    first = Keyring.of_file(path)
    monkeypatch.setattr(Path, "exists", lambda self: False)
    sealed = Keyring.of_file(path).seal(TOKEN, tenant="T1", column="token")
    assert first.open(sealed, tenant="T1", column="token") == TOKEN
    assert [each.name for each in tmp_path.iterdir()] == ["encryption.key"]
