"""Inkpad: loyalty stamp cards. A client of its API."""

from .client import Inkpad, Page
from .errors import InkpadError

__all__ = ["Inkpad", "InkpadError", "Page"]
__version__ = "0.1.0"
