"""The tools of the examples: one is harmless, one is not."""

import sayso

#: What people hear, and what they are asked about. A tool that is not listed here would be asked about too.
POLICIES = {
    "look": sayso.Policy(action="Look {where}."),
    "wipe": sayso.Policy(irreversible=True, action="Wipe {what}.", consequence="They are gone for ever."),
}


def look(where: str) -> str:
    """Looks somewhere.

    Args:
        where: The place.
    """
    return f"looked {where}"


def wipe(what: str) -> str:
    """Wipes something.

    Args:
        what: The thing.
    """
    print("wiped", what)
    return f"wiped {what}"


TOOLS = [look, wipe]
