# SPDX-License-Identifier: GPL-2.0
"""One asyncio event loop for the process, in a thread of its own, for libraries that want one.

It starts at first use and ends with the interpreter. The thread does not follow into a child that is forked: the child starts a
loop of its own at first use, and leaves alone what belongs to its parent's.

Locking: `starting` covers `loop`. call() and soon() may be called from any thread but the loop's own.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any

# Seconds that the loop has to end when the interpreter does; after them its thread is left behind.
END_S = 5.0


def call[T](coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
    """Run a coroutine in the loop and return its value, or raise what it raises.

    It is cancelled when `timeout` seconds are over, which raises TimeoutError, and when something else ends the wait (Ctrl-C).
    """
    future = asyncio.run_coroutine_threadsafe(coroutine, _process.running())
    try:
        return future.result(timeout)
    finally:
        future.cancel()


def soon(callback: Callable[[], object]) -> None:
    """Have the loop call something, and do not wait for it."""
    _process.running().call_soon_threadsafe(callback)


class _Process:
    """The loop of this process, if it has one."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """In a child that was forked, where another thread may have held the lock."""
        self.starting = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None

    def running(self) -> asyncio.AbstractEventLoop:
        """The loop, started at first use."""
        with self.starting:
            if self.loop is None:
                self.loop = asyncio.new_event_loop()
                thread = threading.Thread(target=_run, args=(self.loop,), name="event loop", daemon=True)
                thread.start()
                atexit.register(self.end, self.loop, thread)
            return self.loop

    def end(self, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
        """At the interpreter's end: a daemon thread must not be caught in the middle of something."""
        if loop is self.loop:  # not in a child that was forked
            loop.call_soon_threadsafe(loop.stop)
            thread.join(END_S)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.close()


_process = _Process()
os.register_at_fork(after_in_child=_process.forget)
