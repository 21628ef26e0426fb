"""Public names that are imported when first used; the package's ``__init__.pyi`` is the only list of them."""

from __future__ import annotations

import sys
from typing import Any


class PublicNames:
    """The names of a stub, each with the module that it is imported from."""

    def __init__(self, package: str, stub: str) -> None:
        self.package = package
        self.homes: dict[str, str] = {}
        with open(stub, encoding="utf-8") as lines:
            for line in lines:
                match line.split():
                    case ["from", home, "import", name, "as", _]:
                        self.homes[name] = package if home == "." else home

    def load(self, name: str) -> Any:
        """Import ``name`` from its home, as a ``from`` statement would, and keep it: the package's ``__getattr__``."""
        from importlib import import_module

        from armwise.core.tools.extras import needs

        if name not in self.homes:
            raise AttributeError(f"module {self.package!r} has no attribute {name!r}")
        home = self.homes[name]
        with needs():
            if home == self.package:  # a module, as `from . import name`
                value = import_module(f"{home}.{name}")
            else:
                value = getattr(__import__(home, fromlist=[name]), name)
        setattr(sys.modules[self.package], name, value)
        return value

    def listed(self) -> list[str]:
        """List what completion offers: the package's ``__dir__``."""
        return [*self.homes, *(name for name in vars(sys.modules[self.package]) if name.startswith("__"))]
