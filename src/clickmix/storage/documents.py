"""Documents: JSON files with their kind, their version and a checksum of their payload."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clickmix.errors import FormatError, InputError
from clickmix.storage.atomic import write_atomically

LARGEST_DOCUMENT = 256 * 1024 * 1024
START = 400  # bytes of a file that show what it is
PARAMETERS_KIND, THETA_KIND = "bias parameters", "bias parameters without trust"


def write_document(path: str | Path, *, kind: str, version: int, payload: dict[str, Any]) -> None:
    """Write a document, whole or not at all."""
    write_atomically(path, document_text(kind=kind, version=version, payload=payload).encode())


def document_text(*, kind: str, version: int, payload: dict[str, Any]) -> str:
    """The text of a document. Keys are sorted and NaN is refused, so the same payload always gives the same text.

    >>> print(document_text(kind="x", version=1, payload={"b": 1, "a": 0.5}))  # doctest: +ELLIPSIS
    {
     "checksum": "...",
     "kind": "x",
     "payload": {
      "a": 0.5,
      "b": 1
     },
     "version": 1
    }
    <BLANKLINE>
    """
    document = {"kind": kind, "version": version, "payload": payload, "checksum": checksum(payload)}
    return json.dumps(document, sort_keys=True, allow_nan=False, indent=1, ensure_ascii=False) + "\n"


def document_kind(path: Path) -> str:
    """What a JSON file of clickmix is, by its first bytes; empty for any other file."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return ""
    with path.open("rb") as file:
        start = file.read(START)
    # Keys are sorted, so the kind follows the checksum.
    if found := re.match(rb'\{\s*"checksum": "\w*",\s*"kind": "(clickmix [a-z ]+)"', start):
        return found[1].decode()
    if found := re.match(rb'\s*\{\s*"(alpha|beta|theta)"\s*:\s*\[', start):
        return THETA_KIND if found[1] == b"theta" else PARAMETERS_KIND
    return ""


def read_document(path: str | Path, *, kind: str, version: int) -> dict[str, Any]:
    """The payload of a document of this kind and version; refuse any other file, and a damaged one."""
    return read_versions(path, kind=kind, versions=(version,))[1]


def read_versions(path: str | Path, *, kind: str, versions: Sequence[int]) -> tuple[int, dict[str, Any]]:
    """The version and the payload of a document of this kind, of one of these versions."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: no such file. Expected a {kind}.")
    if not path.is_file():
        raise InputError(f"{path}: not a file. Expected a {kind}.")
    if path.stat().st_size > LARGEST_DOCUMENT:
        raise FormatError(f"{path}: larger than {LARGEST_DOCUMENT // 1024**2} MiB, so not a {kind}.")
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        raise FormatError(f"{path}: damaged, or not a {kind}: not UTF-8 text.") from None
    return parse_versions(text, kind=kind, versions=versions, where=str(path))


def parse_versions(text: str, *, kind: str, versions: Sequence[int], where: str) -> tuple[int, dict[str, Any]]:
    """The version and the payload of a document given as text."""
    try:
        document = strict_json(text)
    except (ValueError, RecursionError):
        raise FormatError(f"{where}: damaged, or not a {kind}: not a JSON document.") from None
    if not isinstance(document, dict) or set(document) != {"kind", "version", "payload", "checksum"}:
        raise FormatError(f"{where}: damaged, or not a {kind}: expected kind, version, payload and checksum.")
    if document["kind"] != kind:
        raise FormatError(f"{where}: found a {document['kind']!r}, expected a {kind!r}.")
    if type(document["version"]) is not int or document["version"] not in versions:
        raise FormatError(
            f"{where}: format version {document['version']!r}; this clickmix reads "
            f"{', '.join(map(str, versions))}. "
            "Make the file again with this clickmix, or use the one that wrote it."
        )
    payload = document["payload"]
    if not isinstance(payload, dict) or document["checksum"] != checksum(payload):
        raise FormatError(f"{where}: damaged: the checksum does not match the contents. Make the file again.")
    return document["version"], payload


def strict_json(text: str) -> Any:
    """Parse JSON with finite numbers and unique keys only; raises ValueError or RecursionError."""
    return json.loads(text, parse_constant=_finite, parse_float=_finite, object_pairs_hook=_unique_keys)


def checksum(payload: dict[str, Any]) -> str:
    canonical = json.dumps(payload, sort_keys=True, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):  # json.loads accepts NaN and Infinity, and reads 1e999 as infinite
        raise ValueError(text)
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)
