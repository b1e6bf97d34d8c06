"""Errors of the Python side in the form of the C++ side: what is wrong with the user's file:line, then what to do."""

from dlc import _C


def error(cls, what, action):
    """An exception to raise. `what` may have several lines; the place goes into the first."""
    first, *rest = what.split("\n")
    return cls("\n".join([first + _C._user_location(), *rest, action]))
