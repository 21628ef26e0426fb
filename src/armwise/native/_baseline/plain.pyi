def flat(
    names: dict[object, object], heads: dict[str, bytes], texts: dict[str, dict[str | bool, bytes]]
) -> bytes | None: ...
def ids_of(arms: tuple[object, ...], id: str) -> tuple[str, ...] | None: ...
def shape_of(arms: tuple[object, ...]) -> tuple[tuple[object, ...], tuple[object, ...]]: ...
def revalued(
    arms: object,
    names: tuple[object, ...],
    values: tuple[object, ...],
    words: bytes,
    id: str,
    texts: dict[str, dict[str | bool, bytes]],
) -> tuple[object, ...] | None: ...
def flat_arms(
    arms: tuple[object, ...],
    id: str,
    hashes: dict[str, bytes],
    heads: dict[str, bytes],
    texts: dict[str, dict[str | bool, bytes]],
) -> bytes | None: ...
