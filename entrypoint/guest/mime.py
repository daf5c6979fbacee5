"""Types of files: by the end of a name, and by how the data begins."""

from __future__ import annotations

BYTES = "application/octet-stream"
TEXT = "text/plain"

_TYPES = dict(pair.split("=") for pair in """
        csv=text/csv css=text/css gif=image/gif gz=application/gzip htm=text/html html=text/html
        jpeg=image/jpeg jpg=image/jpeg js=text/javascript json=application/json
        jsonl=application/jsonl log=text/plain
        md=text/markdown mp3=audio/mpeg mp4=video/mp4 parquet=application/vnd.apache.parquet
        pdf=application/pdf png=image/png py=text/x-python svg=image/svg+xml tar=application/x-tar
        toml=application/toml tsv=text/tab-separated-values txt=text/plain wav=audio/wav webp=image/webp
        xlsx=application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xml=application/xml
        yaml=application/yaml yml=application/yaml zip=application/zip
    """.split())
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)


def ending(name: str) -> str:
    """What stands behind the last dot of a name, in lower case."""
    stem, dot, end = name.rpartition("/")[2].rpartition(".")
    return end.lower() if dot and stem else ""


def guess(name: str, data: bytes) -> str:
    """The type of a file of that name and contents."""
    if known := _TYPES.get(ending(name)):
        return known
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), BYTES)


def extension(mime: str) -> str:
    """The end of a name, with its dot, for a type; "" for one that isn't known."""
    ends = (end for end, kind in sorted(_TYPES.items()) if kind == mime and end not in ("jpeg", "htm", "log"))
    return next((f".{end}" for end in ends), "")
