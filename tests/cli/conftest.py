"""The services that commands are run against."""

from tests.service.conftest import run

__all__ = ["run"]
