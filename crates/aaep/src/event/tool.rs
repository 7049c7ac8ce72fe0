//! The tool and action events (§4.3): tool calls and output.

use crate::event::{CoalesceHint, RiskLevel, ToolStatus};
use crate::grammar::{is_media_type, is_tool_name};
use crate::id::{OutputId, ToolCallId};
use crate::record::{FieldType, ToolName, record};
use crate::rule;

const TOOL: FieldType = FieldType::Grammar {
    matches: is_tool_name,
    pattern: "^[A-Za-z_][A-Za-z0-9_.-]{0,255}$",
    description: "a name like fetch_balance",
};

record! {
    /// `aaep:agent.tool.invoked` (§4.3.1): a tool is about to run. Emitted before the call.
    ToolInvoked {
        required {
            /// The tool's name.
            tool: ToolName, TOOL, rule::TOOL_FORM, rule::INVOKED;
            /// What this call does.
            summary_normal: String, FieldType::LONG_TEXT, rule::SUMMARIES, rule::INVOKED, spoken;
        }
        optional with other summaries {
            /// What the tool does in general.
            description: String, FieldType::SHORT_TEXT, rule::TOOL_FORM, spoken;
            /// A readable summary of the arguments, without secrets.
            args_summary: String, FieldType::LONG_OR_EMPTY_TEXT, rule::TOOL_FORM, spoken;
            /// The expected duration in milliseconds.
            expected_duration_ms: u64, FieldType::MILLIS, rule::EXPECTED_DURATION;
            /// The potential harm of the call; low if absent.
            risk_level: RiskLevel, FieldType::Enum(RiskLevel::VALUES), rule::RISK;
            /// Whether the call cannot be undone; false if absent.
            irreversible: bool, FieldType::Bool, rule::RISK;
            /// Links the completion to this call.
            tool_call_id: ToolCallId, ToolCallId::FIELD_TYPE, rule::CALL_ID;
        }
    }

    /// `aaep:agent.tool.completed` (§4.3.2): a tool call ended, successfully or not.
    ToolCompleted {
        required {
            /// The tool's name, as in the invocation.
            tool: ToolName, TOOL, rule::TOOL_FORM, rule::TOOL_RESULT;
            /// The result of the call.
            status: ToolStatus, FieldType::Enum(ToolStatus::VALUES), rule::TOOL_RESULT, rule::TOOL_RESULT;
        }
        optional with summaries {
            /// The id of the call that ended.
            tool_call_id: ToolCallId, ToolCallId::FIELD_TYPE, rule::CALL_ID;
            /// The duration in milliseconds.
            duration_ms: u64, FieldType::MILLIS, rule::DURATION;
            /// What went wrong.
            error_message: String, FieldType::SHORT_TEXT, rule::ERROR_MESSAGE, spoken;
        }
    }

    /// `aaep:agent.output.streaming` (§4.3.3): a chunk of the agent's output.
    OutputStreaming {
        required {
            /// The text of the chunk.
            chunk: String, FieldType::LONG_OR_EMPTY_TEXT, rule::OUTPUT_FORM, rule::OUTPUT, spoken;
            /// The number of code points of this output before the chunk (C-B11).
            position: u64, FieldType::COUNT, rule::OUTPUT_FORM, rule::OUTPUT;
            /// Whether this is the last chunk.
            complete: bool, FieldType::Bool, rule::OUTPUT, rule::OUTPUT;
        }
        optional {
            /// The smallest unit in which the chunk should be spoken.
            coalesce_hint: CoalesceHint, FieldType::Enum(CoalesceHint::VALUES), rule::OUTPUT_HINT;
            /// The output that the chunk belongs to.
            output_id: OutputId, OutputId::FIELD_TYPE, rule::OUTPUT_FORM;
            /// The media type of the text; `text/plain` if absent.
            content_type: String,
                FieldType::Grammar {
                    matches: is_media_type,
                    pattern: "^[a-zA-Z][a-zA-Z0-9.+_-]*/[a-zA-Z][a-zA-Z0-9.+_-]*$",
                    description: "a media type like text/plain",
                },
                rule::OUTPUT_TYPE;
            /// The language of this chunk, if it differs from the event's.
            language: String, FieldType::LanguageTag, rule::OUTPUT_TYPE;
        }
    }
}

impl OutputStreaming {
    /// Returns no summaries, because the output itself is spoken.
    #[allow(clippy::unused_self, reason = "the other events have summaries")]
    pub(crate) fn summaries(&self) -> [Option<&str>; 3] {
        [None; 3]
    }
}
