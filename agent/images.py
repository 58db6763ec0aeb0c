"""Pictures by what their bytes are: of which kind, and whether they are whole. A provider refuses a whole request for one that is not."""

import zlib

from agent.models.base import Image

_PNG = b"\x89PNG\r\n\x1a\n"
_WEBP_CHUNKS = (b"VP8 ", b"VP8L", b"VP8X")
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SCAN = 0xDA


def image_of(data: bytes) -> Image | None:
    """A picture, by its first bytes and not by what it is called; None if it is of no kind that models take."""
    if data.startswith(_PNG):
        return Image(media_type="image/png", data=data)
    if data.startswith(b"\xff\xd8\xff"):
        return Image(media_type="image/jpeg", data=data)
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return Image(media_type="image/gif", data=data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return Image(media_type="image/webp", data=data)
    return None


def is_whole(image: Image) -> bool:
    """Whether the parts that its kind is made of are there. A look at the structure: only a decoder knows what is in them."""
    data = image.data
    match image.media_type:
        case "image/png":
            return _png_is_whole(data)
        case "image/jpeg":
            return _jpeg_is_whole(data)
        case "image/gif":
            return any(data[6:8]) and any(data[8:10]) and b"\x2c" in data[13:]
        case "image/webp":
            return data[12:16] in _WEBP_CHUNKS and int.from_bytes(data[4:8], "little") + 8 <= len(data)


def _png_is_whole(data: bytes) -> bool:
    """Chunks with their sums, from the header over pixels to the end."""
    seen: list[bytes] = []
    at = len(_PNG)
    while at + 12 <= len(data):
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        body, told = data[at + 4 : at + 8 + length], data[at + 8 + length : at + 12 + length]
        if told != zlib.crc32(body).to_bytes(4, "big"):
            return False
        seen.append(kind)
        if kind == b"IEND":
            return seen[0] == b"IHDR" and b"IDAT" in seen
        at += 12 + length
    return False


def _jpeg_is_whole(data: bytes) -> bool:
    """Segments up to where the pixels begin, with a frame that says of which size they are."""
    at, framed = 2, False
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if marker == 0xFF:  # filling
            at += 1
            continue
        if marker == _SCAN:
            return framed and at + 2 + length < len(data)
        framed = framed or marker in _FRAMES
        at += 2 + length
    return False
