//! The tool-and-action family (§4.3): what the agent does, and what it says.

use crate::event::{CoalesceHint, RiskLevel, ToolStatus};
use crate::form::{is_media_type, is_tool_name};
use crate::id::{OutputId, ToolCallId};
use crate::record::{Shape, ToolName, record};
use crate::rule;

const TOOL: Shape = Shape::Form {
    is: is_tool_name,
    pattern: "^[A-Za-z_][A-Za-z0-9_.-]{0,255}$",
    called: "a name like fetch_balance",
};

record! {
    /// `aaep:agent.tool.invoked` (§4.3.1): a tool is about to run. Said before it does.
    ToolInvoked {
        required {
            /// The tool's name.
            tool: ToolName, TOOL, rule::TOOL_FORM, rule::INVOKED;
            /// What this call does.
            summary_normal: String, Shape::LONG, rule::SUMMARIES, rule::INVOKED, spoken;
        }
        optional with other summaries {
            /// What the tool does in general.
            description: String, Shape::SHORT, rule::TOOL_FORM, spoken;
            /// The arguments in words; no secrets.
            args_summary: String, Shape::LONG_OR_EMPTY, rule::TOOL_FORM, spoken;
            /// How long it should take.
            expected_duration_ms: u64, Shape::MILLIS, rule::STARTED_FORM;
            /// How much harm it could do; low if not said.
            risk_level: RiskLevel, Shape::Word(RiskLevel::WORDS), rule::RISK;
            /// Whether it can never be undone; no if not said.
            irreversible: bool, Shape::Bool, rule::RISK;
            /// Ties the completion to this call.
            tool_call_id: ToolCallId, ToolCallId::SHAPE, rule::CALL_ID;
        }
    }

    /// `aaep:agent.tool.completed` (§4.3.2): a tool has ended, one way or another.
    ToolCompleted {
        required {
            /// The tool's name, as it was invoked.
            tool: ToolName, TOOL, rule::TOOL_FORM, rule::TOOL_DONE;
            /// How it ended.
            status: ToolStatus, Shape::Word(ToolStatus::WORDS), rule::TOOL_DONE, rule::TOOL_DONE;
        }
        optional with summaries {
            /// The call that ended.
            tool_call_id: ToolCallId, ToolCallId::SHAPE, rule::CALL_ID;
            /// How long it took.
            duration_ms: u64, Shape::MILLIS, rule::COMPLETED_FORM;
            /// What went wrong.
            error_message: String, Shape::SHORT, rule::ERROR_MESSAGE, spoken;
        }
    }

    /// `aaep:agent.output.streaming` (§4.3.3): a piece of what the agent has to say.
    OutputStreaming {
        required {
            /// The piece.
            chunk: String, Shape::LONG_OR_EMPTY, rule::OUTPUT_FORM, rule::OUTPUT, spoken;
            /// How many code points of this output came before it (C-B11).
            position: u64, Shape::COUNT, rule::OUTPUT_FORM, rule::OUTPUT;
            /// Whether it is the last.
            complete: bool, Shape::Bool, rule::OUTPUT, rule::OUTPUT;
        }
        optional {
            /// Up to where it makes sense when spoken.
            coalesce_hint: CoalesceHint, Shape::Word(CoalesceHint::WORDS), rule::OUTPUT_HINT;
            /// The output that it belongs to.
            output_id: OutputId, OutputId::SHAPE, rule::OUTPUT_FORM;
            /// What the text is; `text/plain` if not said.
            content_type: String,
                Shape::Form {
                    is: is_media_type,
                    pattern: "^[a-zA-Z][a-zA-Z0-9.+_-]*/[a-zA-Z][a-zA-Z0-9.+_-]*$",
                    called: "a media type like text/plain",
                },
                rule::OUTPUT_TYPE;
            /// The language of this piece, where it differs from the event's.
            language: String, Shape::Tag, rule::OUTPUT_TYPE;
        }
    }
}

impl OutputStreaming {
    /// It has none: what the agent says is the output itself.
    #[allow(clippy::unused_self, reason = "the other events have some")]
    pub(crate) fn summaries(&self) -> [Option<&str>; 3] {
        [None; 3]
    }
}
