from typing import Any

def tokens(
    values: list[Any], space: bytes, without: str | None, limits: tuple[int, int, int, int]
) -> tuple[list[bytes], int, int | None]: ...
