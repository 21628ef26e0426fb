def read_journaled(
    body: bytes,
) -> (
    tuple[tuple[bytes, bytes, list[float], int, int, int, float, str, str, str, str], bytes, int, bytes, bytes, bytes]
    | None
): ...
def blake(token: bytes) -> int: ...
def linked(chain: bytes, seq: int, time: int, heads: list[bytes], bodies: list[bytes]) -> list[bytes]: ...
def read_part(text: bytes, space: bytes) -> tuple[bytes, int] | None: ...
def read_offered(texts: tuple[bytes, ...]) -> tuple[tuple[str, ...], bytes, int] | None: ...
def distribution(ids: tuple[str, ...], numbers: bytes) -> bytes | None: ...
def read_decision(
    body: bytes, before: list[bytes]
) -> (
    tuple[
        bytes,
        bytes,
        int,
        str | None,
        bool,
        str | None,
        int,
        tuple[str, ...] | None,
        bytes | None,
        bytes | None,
        bytes | None,
    ]
    | None
): ...
