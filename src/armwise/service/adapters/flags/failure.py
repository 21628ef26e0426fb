"""Errors in the form of the protocol."""

from __future__ import annotations

import msgspec

from armwise.service.web.http import JSON, Headers, Problem, Response

PARSE_ERROR, TARGETING_KEY_MISSING, INVALID_CONTEXT = "PARSE_ERROR", "TARGETING_KEY_MISSING", "INVALID_CONTEXT"
FLAG_NOT_FOUND, GENERAL = "FLAG_NOT_FOUND", "GENERAL"


class Failure(Problem):
    """A problem whose body has the protocol's code, and the flag's key where one was meant."""

    def __init__(self, status: int, code: str, message: str, headers: Headers = (), key: str = "") -> None:
        super().__init__(status, code, message, headers)
        self.key = key

    @property
    def fields(self) -> dict[str, str]:
        """The protocol's members."""
        return {"errorCode": self.code, "errorDetails": str(self)} | ({"key": self.key} if self.key else {})

    def response(self) -> Response:
        """The protocol's body."""
        return Response(self.status, msgspec.json.encode(self.fields), JSON, self.headers)


def recoded(problem: Problem) -> Problem:
    """A problem of the service in the protocol's words; what it refused of a context is an invalid context."""
    if isinstance(problem, Failure):
        return problem
    code = INVALID_CONTEXT if problem.status == 400 else GENERAL
    return Failure(problem.status, code, str(problem), problem.headers)
