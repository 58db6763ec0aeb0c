"""Pictures are known by their bytes, and those that are cut off or made up are told from whole ones."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.images import image_of, is_whole


def png(width: int, height: int, pixels: bytes | None = None) -> bytes:
    """A grey picture; `pixels` stand for its packed ones."""
    packed = zlib.compress((b"\0" + b"\x80" * width) * height) if pixels is None else pixels
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)), (b"tEXt", b"by\0hand"), (b"IDAT", packed), (b"IEND", b""),
    )  # fmt: skip
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


JPEG = (
    b"\xff\xd8\xff\xe0\0\x10" + b"J" * 14 + b"\xff\xff\xc0\0\x11\x08" + struct.pack(">HH", 48, 64) + b"\3" * 10 + b"\xff\xda\0\x0c" + b"s" * 10
    + b"pixels\xff\xd9"
)  # fmt: skip
GIF = b"GIF89a" + struct.pack("<HHBBB", 64, 48, 0, 0, 0) + b"\x2c" + b"\0" * 12 + b"\x3b"
WEBP = b"RIFF" + struct.pack("<I", 16) + b"WEBPVP8L" + struct.pack("<I", 4) + b"\x2f\0\0\0"
WHOLE = {"png": png(64, 48), "jpeg": JPEG, "gif": GIF, "webp": WEBP}


def whole(data: bytes) -> bool:
    image = image_of(data)
    return image is not None and is_whole(image)


@pytest.mark.parametrize("kind", WHOLE)
def test_a_whole_picture_is_known_by_its_bytes(kind: str) -> None:
    image = image_of(WHOLE[kind])
    assert image is not None
    assert image.media_type == f"image/{kind}"
    assert is_whole(image)
    assert whole(WHOLE[kind] + b"trailing bytes, which cameras and editors leave")


@pytest.mark.parametrize("kind", WHOLE)
def test_one_cut_off_in_its_head_or_followed_by_garbage_is_not_whole(kind: str) -> None:
    head = WHOLE[kind][:13]
    assert not whole(head)
    assert not whole(head + b" cut off by a bad upload")


def test_of_a_png_every_chunk_is_looked_at() -> None:
    data = WHOLE["png"]
    assert not any(whole(data[:at]) for at in range(len(data)))
    assert not any(whole(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]) for at in range(16, len(data)))


@given(data=st.binary(max_size=100), kind=st.sampled_from(sorted(WHOLE)), kept=st.integers(4, 30))
def test_no_bytes_trip_over_it(data: bytes, kind: str, kept: int) -> None:
    whole(WHOLE[kind][:kept] + data)
