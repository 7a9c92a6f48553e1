"""Inkpad: loyalty stamp cards. A client of its API."""

from . import error_classes
from .async_client import AsyncInkpad
from .client import Inkpad
from .connection import ApiResponse, Page
from .error_classes import *  # noqa: F403
from .errors import InkpadError
from .operations import VERSION

__all__ = ["ApiResponse", "AsyncInkpad", "Inkpad", "InkpadError", "Page"]
__all__ += error_classes.__all__
__version__ = VERSION
