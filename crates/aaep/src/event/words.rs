//! The words that events choose from.

use crate::record::words;

words! {
    /// How much an event's text says (§3.3.1).
    Verbosity { Terse = "terse", Normal = "normal", Detailed = "detailed", }
    /// How urgent an event is (§3.3.2).
    Urgency { Background = "background", Normal = "normal", Critical = "critical", }
    /// Which way text runs (§11.4).
    TextDirection { LeftToRight = "ltr", RightToLeft = "rtl", Auto = "auto", }
    /// The state of an agent (§4.2.1).
    State {
        Idle = "idle",
        Thinking = "thinking",
        CallingTool = "calling_tool",
        WritingOutput = "writing_output",
        AwaitingInput = "awaiting_input",
        Deciding = "deciding",
        HandingOff = "handing_off",
    }
    /// A state beyond those that the specification advises: just as lawful.
    or Other
    /// Why a session failed (§4.1.3).
    ErrorCategory {
        /// Trying again is likely to work.
        Transient = "transient",
        /// Trying again will not work.
        Permanent = "permanent",
        /// The person has to do something first.
        RequiresUser = "requires_user",
        /// The producer cannot tell.
        UnknownCause = "unknown",
    }
    /// Who cancelled a session (§4.1.4).
    CancelledBy { User = "user", Producer = "producer", Timeout = "timeout", System = "system", }
    /// How much harm an action could do (§4.3.1).
    RiskLevel { Low = "low", Medium = "medium", High = "high", }
    /// How a tool ended (§4.3.2).
    ToolStatus { Success = "success", Error = "error", Timeout = "timeout", }
    /// Up to where a chunk of output makes sense when spoken (§4.3.3).
    CoalesceHint {
        None = "none",
        Word = "word",
        Sentence = "sentence",
        Paragraph = "paragraph",
        Completion = "completion",
    }
    /// A person's answer, or what holds without one (§4.4.1).
    Decision { Accept = "accept", Reject = "reject", }
    /// Whether an action can be undone (§4.4.1).
    Reversibility {
        Reversible = "reversible",
        ReversibleWithEffort = "reversible_with_effort",
        Irreversible = "irreversible",
    }
    /// What an answer to a clarification may be (§4.4.2).
    ResponseKind {
        FreeText = "freetext",
        YesNo = "yes_no",
        MultipleChoice = "multiple_choice",
        Numeric = "numeric",
    }
    /// To whom a session is handed (§4.4.3).
    HandoffTarget {
        Human = "human",
        SpecialistAgent = "specialist_agent",
        EscalationQueue = "escalation_queue",
    }
}
