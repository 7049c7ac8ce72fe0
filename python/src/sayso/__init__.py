"""People hear what an AI agent does, and are asked before it does anything irreversible.

::

    import sayso

    @sayso.tool(irreversible=True, action="Send {amount} euros to {to}.")
    def send(amount: str, to: str) -> str:
        ...

    with sayso.session("Paying bills") as s:
        s.say("The bill is 5 euros.")
        send("5.00", "Ben")  # asks first; raises sayso.Refused without a yes

Adapters for agent frameworks are modules of their own, such as ``sayso.langchain`` and ``sayso.openai_agents``. None of them is
imported here.
"""

from ._agent_api import Producer
from ._consent import ASK, HARMLESS, Granted, Policy, Template, describe_for_model
from ._current import find_current_core as _find_current_core
from ._events import EventOptions
from ._hub import Hub, SessionBlock, default_hub, hub, session
from ._json import canonical_json, digest
from ._redact import StreamRedactor, redact
from ._session import (
    Answer,
    AsyncSession,
    AsyncToolCall,
    HandOffOutcome,
    Invitation,
    Session,
    ToolCall,
)
from ._text import LocalizedText, Text, text
from ._tool import tool
from .errors import (
    AccessDenied,
    Cancelled,
    ConsentError,
    ConsentMismatch,
    ConsentUsed,
    EventLoopRunning,
    Finding,
    HubUnreachable,
    InvalidRequest,
    LimitReached,
    MalformedResponse,
    NoSession,
    Refused,
    RuleViolations,
    SaysoError,
    SessionStopped,
    StorageFailed,
    ToolTimedOut,
    Unanswered,
    UntrustedHub,
)

__version__ = "0.1.0"


def has_session() -> bool:
    """Returns whether there is a current session."""
    return _find_current_core() is not None


__all__ = [
    "ASK",
    "HARMLESS",
    "AccessDenied",
    "Answer",
    "AsyncSession",
    "AsyncToolCall",
    "Cancelled",
    "ConsentError",
    "ConsentMismatch",
    "ConsentUsed",
    "EventLoopRunning",
    "EventOptions",
    "Finding",
    "Granted",
    "HandOffOutcome",
    "Hub",
    "HubUnreachable",
    "InvalidRequest",
    "Invitation",
    "LimitReached",
    "LocalizedText",
    "MalformedResponse",
    "NoSession",
    "Policy",
    "Producer",
    "Refused",
    "RuleViolations",
    "SaysoError",
    "Session",
    "SessionBlock",
    "SessionStopped",
    "StorageFailed",
    "StreamRedactor",
    "Template",
    "Text",
    "ToolCall",
    "ToolTimedOut",
    "Unanswered",
    "UntrustedHub",
    "canonical_json",
    "default_hub",
    "describe_for_model",
    "digest",
    "has_session",
    "hub",
    "redact",
    "session",
    "text",
    "tool",
]
