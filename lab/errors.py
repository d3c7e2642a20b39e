# SPDX-License-Identifier: GPL-2.0
"""What can go wrong in the lab. Every message says what failed, on which machine, and what to look at."""


class LabError(Exception):
    """Base of all errors of the lab."""


class MachineLostError(LabError):
    """A machine crashed, powered off or cut the connection while somebody used it."""


class CommandTimeoutError(LabError):
    """A command in a machine ran longer than its limit and was killed there."""


class CommandFailedError(LabError):
    """A command that had to succeed (check=True) ended with another exit code."""


class Malformed(ValueError):
    """Text of a machine that does not have the form it should have; the message has the text."""
