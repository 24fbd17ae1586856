"""Option texts such as query_id=a,doc_id=b -> names."""

from __future__ import annotations

from clickmix.errors import SettingError


def pairs(text: str) -> dict[str, str]:
    """query_id=a,doc_id=b as a dictionary."""
    parts = words(text)
    for part in parts:
        if "=" not in part:
            raise SettingError(f"--columns {part!r}: expected name=column, for instance query_id=search_term.")
    return dict(part.split("=", 1) for part in parts)


def words(text: str) -> list[str]:
    """a,b as a list."""
    return [word.strip() for word in text.split(",") if word.strip()]
