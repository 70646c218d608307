"""The version of the package, for modules that need nothing else of it."""

from typing import Final

__version__: Final = "0.1.0"
