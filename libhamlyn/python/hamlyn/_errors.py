# SPDX-License-Identifier: MIT
"""What calls raise."""

from __future__ import annotations

import errno
import os
from ctypes import create_string_buffer
from typing import Any, Optional

from . import _library

library = _library.library


class Error(OSError):
    """A call failed.

    What is raised is a subclass of the class that Python itself has for the errno as
    well: BlockingIOError (EAGAIN), TimeoutError, BrokenPipeError,
    ConnectionResetError, ConnectionRefusedError, PermissionError, FileNotFoundError
    and so on.
    """

    #: the C function
    call: str
    #: what was wrong and what is allowed, as the device tells it, or ""
    explanation: str

    def __init__(self, number: int, call: str = "", explanation: str = ""):
        super().__init__(number, os.strerror(number))
        self.call = call
        self.explanation = explanation

    def __reduce__(self) -> Any:
        return (_make, (self.errno, self.call, self.explanation))

    def __str__(self) -> str:
        parts = [p for p in (self.call, self.explanation, self.strerror) if p]
        return f"[{errno.errorcode.get(self.errno, self.errno)}] {': '.join(parts)}"


_classes: dict[int, type[Error]] = {}


def _class_of(number: int) -> type[Error]:
    cls = _classes.get(number)
    if cls is None:
        base = type(OSError(number, ""))
        cls = Error if base is OSError else type(base.__name__, (Error, base),
                                                 {"__doc__": Error.__doc__,
                                                  "__module__": "hamlyn"})
        _classes[number] = cls
    return cls


def _make(number: int, call: str, explanation: str) -> Error:
    return _class_of(number)(number, call, explanation)


def failure(result: int, call: str, device: Optional[int] = None) -> Error:
    """The exception for what a C function returned; device: what may tell more.

    0 is this thread, for calls that make what could be asked.
    """
    explanation = ""
    if device is not None:
        text = create_string_buffer(_library.EXPLAIN_BYTES)
        if not library.h_explain(device, text, len(text)):
            explanation = text.value.decode("utf-8", "replace")
    return _make(-result, call, explanation)
