"""How long tests wait for something that must come.

There is one limit, far above what a busy machine needs: a test that reaches it has found something
that never comes. Nothing is measured against it.
"""

import time

PATIENCE = 240  # seconds


def until(condition, what=""):
    """Waits until condition() is true, and returns what it returned. what: a text for the failure,
    or a function that makes one."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"it never comes: {what() if callable(what) else what}")
        time.sleep(0.01)
    return value
