//! The enumerations used in events.

use crate::record::open_enum;

open_enum! {
    /// The level of detail of an event's text (§3.3.1).
    Verbosity { Terse = "terse", Normal = "normal", Detailed = "detailed", }
    /// How urgent an event is (§3.3.2).
    Urgency { Background = "background", Normal = "normal", Critical = "critical", }
    /// The direction of text (§11.4).
    TextDirection { LeftToRight = "ltr", RightToLeft = "rtl", Auto = "auto", }
    /// The state of an agent (§4.2.1).
    AgentState {
        Idle = "idle",
        Thinking = "thinking",
        CallingTool = "calling_tool",
        WritingOutput = "writing_output",
        AwaitingInput = "awaiting_input",
        Deciding = "deciding",
        HandingOff = "handing_off",
    }
    /// A state that the specification does not list. Such states are allowed.
    or Other
    /// Why a session failed (§4.1.3).
    ErrorCategory {
        /// A retry will probably succeed.
        Transient = "transient",
        /// A retry will not succeed.
        Permanent = "permanent",
        /// The person has to act first.
        RequiresUser = "requires_user",
        /// The producer does not know the cause.
        UnknownCause = "unknown",
    }
    /// Who cancelled a session (§4.1.4).
    CancelledBy { User = "user", Producer = "producer", Timeout = "timeout", System = "system", }
    /// The potential harm of an action (§4.3.1).
    RiskLevel { Low = "low", Medium = "medium", High = "high", }
    /// The result of a tool call (§4.3.2).
    ToolStatus { Success = "success", Error = "error", Timeout = "timeout", }
    /// The smallest unit in which a chunk of output should be spoken (§4.3.3).
    CoalesceHint {
        None = "none",
        Word = "word",
        Sentence = "sentence",
        Paragraph = "paragraph",
        Completion = "completion",
    }
    /// The answer to a confirmation, from a person or by default (§4.4.1).
    Decision { Accept = "accept", Reject = "reject", }
    /// Whether an action can be undone (§4.4.1).
    Reversibility {
        Reversible = "reversible",
        ReversibleWithEffort = "reversible_with_effort",
        Irreversible = "irreversible",
    }
    /// The kind of answer to a clarification (§4.4.2).
    ResponseKind {
        FreeText = "freetext",
        YesNo = "yes_no",
        MultipleChoice = "multiple_choice",
        Numeric = "numeric",
    }
    /// The kind of target that a session is handed to (§4.4.3).
    HandoffTarget {
        Human = "human",
        SpecialistAgent = "specialist_agent",
        EscalationQueue = "escalation_queue",
    }
}
