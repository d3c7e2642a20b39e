# SPDX-License-Identifier: GPL-2.0
"""Child processes that cannot outlive us.

The kernel kills such a child when the *thread* that started it ends (prctl(2), PR_SET_PDEATHSIG): start them from a thread
that lives as long as they should, normally the main thread.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import IO


def start_tied(
    command: Sequence[str],
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own, killed when we end in whatever way. Ctrl-C reaches us, not it."""
    tied = ["setpriv", "--pdeathsig", "KILL", "--", *command]
    return subprocess.Popen(tied, stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=pass_fds, start_new_session=True)


def stop(process: subprocess.Popen[bytes], grace: float = 5) -> None:
    """End a child: politely, and after `grace` seconds by force. Returns when it is gone."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
