"""How long tests wait for something that must come.

There is one limit, far above what a busy machine needs: a test that reaches it has found something
that never comes. Nothing is measured against it.
"""

import socket
import time

PATIENCE = 240  # seconds


def until(condition, what=""):
    """Waits until condition() is true, and returns its value. `what` is the text for a failure, or
    a function that makes it."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"it never comes: {what() if callable(what) else what}")
        time.sleep(0.01)
    return value


def listens(address):
    """Can a server be reached at this address? The socket's file exists a moment before that."""
    if address.startswith("tcp://"):
        host, port = address[6:].split(":")
        family, at = socket.AF_INET, (host, int(port))
    else:
        family, at = socket.AF_UNIX, address.split(":", 1)[1]
    with socket.socket(family) as s:
        return s.connect_ex(at) == 0
