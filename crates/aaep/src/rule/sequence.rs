//! Rules about the order of events, checked in step 10: §4.5, chapter 6 and appendix A; and, in step 7, the format of a reply.
//! `rules!` explains the form `strict/receive @step`.

use super::rules;

rules! {
    // Session start and end (§4.1, §4.5.1)
    ONE_START_ONE_END: "AAEP-4.1-1" error/error @10
        "a session must have exactly one agent.session.started and one terminal event" aliases ["AAEP-A.8-1"];
    STARTED_FIRST: "AAEP-4.1.1-2" error/error @10 "agent.session.started must be the first event of its session"
        aliases ["AAEP-9.3.1-1", "AAEP-4.1.1-3", "AAEP-3.2.4-2"];
    SESSION_ID_NEW: "AAEP-3.2.4-3" error/error @10 "a session_id must not be used for a second session"
        aliases ["AAEP-2.2.5-1"];
    NOTHING_AFTER_END: "AAEP-4.5.1-1" error/error @10 "nothing may follow the terminal event of a session"
        aliases ["AAEP-4.1.2-2", "AAEP-4.1.3-3", "AAEP-4.1.4-3"];
    COMPLETED_AFTER_FAILURE: "AAEP-4.1.2-3" error/error @10
        "agent.session.completed must not follow agent.session.errored or agent.session.cancelled";

    // Ids, numbers, time (§3.2, §3.4.1)
    EVENT_ID_UNIQUE: "AAEP-3.2.3-2" error/warning @10 "an event_id must be used only once";
    TIME_ORDER: "AAEP-3.2.5-7" error/error @10 "timestamps must not decrease within a session";
    SEQUENCE_STEP: "AAEP-3.4.1-2" error/error @10 "sequence_number must increase by 1 with each event of the session";
    SEQUENCE_ALL_OR_NONE: "AAEP-3.4.1-3" error/error @10
        "either every event of a session or none must have a sequence_number";

    // States (§4.2)
    FIRST_STATE: "AAEP-4.2.1-4" error/error @10 "the first agent.state.changed of a session must have the from_state idle";
    STATE_CHAIN: "AAEP-4.2.1-5" error/error @10
        "from_state must be the previous to_state, or the state that the last event implied" decisions ["C-B7", "C-B8"];
    STATE_SHOWN: "AAEP-9.3.1-2" warning/warning @10
        "an agent.state.changed should announce the states calling_tool and writing_output"
        decisions ["C-B7"] aliases ["AAEP-A.3-2"];
    PROGRESS_MERGED: "AAEP-4.2.2-5" warning/warning @10
        "progress events in quick succession should be merged, for example into one for every 5 percent";

    // Tools (§4.3, §4.5.2)
    CALL_ID_UNIQUE: "AAEP-4.3.1-4" error/error @10
        "a tool_call_id must be used for only one call in the session, and the completion of that call must repeat it";
    TOOL_MATCHES: "AAEP-4.3.2-2" error/error @10 "agent.tool.completed must name the tool that was invoked";
    TOOL_COMPLETED_BEFORE_STATE: "AAEP-4.3.2-3" error/error @10
        "agent.tool.completed must come before the agent.state.changed that leaves calling_tool";
    TOOL_INVOKED_FIRST: "AAEP-4.5.2-1" error/error @10 "every agent.tool.completed must follow an agent.tool.invoked";
    CALL_ID_PRESENT: "AAEP-4.5.2-2" warning/warning @10 "parallel calls should each have a tool_call_id";
    TOOL_COMPLETED_ONCE: "AAEP-A.3-1" error/error @10 "every agent.tool.invoked must have exactly one agent.tool.completed";
    TOOL_COMPLETED: "AAEP-9.3.1-4" error/error @10
        "every agent.tool.invoked must have its agent.tool.completed before the session ends, with status timeout if it was abandoned"
        decisions ["C-B10"] aliases ["AAEP-4.3.2-4"];

    // Output (§4.3.3, §4.5.4)
    OUTPUT_POSITION: "AAEP-4.3.3-2" error/error @10
        "position must be the number of characters (code points) of this output that were already sent" decisions ["C-B11"];
    POSITION_NOT_DECREASING: "AAEP-4.3.3s-2" error/error @10 "position must not decrease within an output"
        decisions ["C-B11"] aliases ["AAEP-A.6-1"];
    OUTPUT_COMPLETED: "AAEP-4.5.4-1" error/error @10 "every output must have exactly one chunk with complete true"
        decisions ["C-B10"] aliases ["AAEP-4.3.3-3"];
    NO_CHUNK_AFTER_COMPLETION: "AAEP-4.5.4-2" error/error @10 "no chunk may follow the one with complete true";

    // Consent (§4.3.1, §4.5.3, chapter 6)
    IRREVERSIBLE_CONSENT: "AAEP-4.3.1-3" error/error @10
        "an irreversible action may be invoked only after a confirmation.reply has accepted it"
        decisions ["C-B1", "C-B2", "C-B3"] aliases ["AAEP-4.4.1-1"];
    HIGH_RISK_CONSENT: "AAEP-2.3.5-1" error/error @10
        "a high-risk action may be invoked only after its confirmation was accepted" decisions ["C-B3"];
    ACTION_WAITS: "AAEP-6.1-1" error/error @10 "an action must wait until its confirmation is answered"
        aliases ["AAEP-2.2.14-1", "AAEP-6.1-4", "AAEP-6.3.4-2"];
    NO_ACTION_AFTER_REJECT: "AAEP-4.5.3-1" error/error @10
        "an action needs a reply that accepts it and must not follow a rejection" decisions ["C-B1"] aliases ["AAEP-A.4-3", "AAEP-2.2.15-2", "AAEP-5.9-2", "AAEP-6.3.4-3", "AAEP-6.3.4-4", "AAEP-6.3.4-7", "AAEP-6.3.5-1", "AAEP-10.2.2-2"];
    MODIFIED_ACTION: "AAEP-6.3.2-1" error/error @10
        "an accepting reply with a modified_action counts as a rejection if modification is not supported";
    ACCEPTED_ACTION: "AAEP-4.5.3-2" warning/warning @10
        "after a call is accepted, an agent.tool.invoked should announce it before the session completes";
    REJECT_SHOWN: "AAEP-4.5.3-3" error/error @10
        "after an action is refused, an event must show the refusal, for example an agent.state.changed to thinking"
        aliases ["AAEP-6.1-2", "AAEP-6.1-3"];
    RESOLUTION_SHOWN: "AAEP-9.4.1-3" error/error @10
        "after a question is answered or expires, an event must show the resolution" decisions ["C-D9"] aliases ["AAEP-6.7.2-1", "AAEP-5.9-3"];
    DUPLICATE_QUESTION: "AAEP-6.1-5" error/error @10
        "a second question about an action must not be asked while the first is open";
    TOKEN_NEW: "AAEP-6.2.2-1" error/error @10 "a reply_token must not be used for a second question"
        decisions ["C-D4"] aliases ["AAEP-6.2.2-2"];
    DEFAULT_APPLIED: "AAEP-2.2.14-2" error/error @10 "the default must be applied when a question expires"
        aliases ["AAEP-4.4.2-5"];
    DEFAULT_NOT_EARLY: "AAEP-6.4-1" error/error @10
        "a question expires timeout_seconds after its timestamp, not earlier";
    AWAITING_INPUT_SHOWN: "AAEP-A.4-1" warning/warning @10
        "an agent.state.changed to awaiting_input should precede a question" decisions ["C-B7"];
    AWAITING_INPUT_LEFT: "AAEP-A.4-2" warning/warning @10
        "an agent.state.changed should leave awaiting_input after a question is resolved";
    COUNTDOWN: "AAEP-6.4.3-1" warning/warning @10
        "a question with a timeout of more than 60 seconds should be followed by progress events when half and when a tenth of the time is left";

    // Replies (§6.3, §6.5)
    REPLY_TOKEN_KNOWN: "AAEP-2.2.15-1" error/error @10 "a reply must carry the reply_token of a question that was asked"
        aliases ["AAEP-6.2.3-1"];
    REPLY_ONCE: "AAEP-GS.5.3-1" warning/warning @10 "a question should be answered only once";
    REPLY_ALLOWED: "AAEP-6.3.4-6" error/error @10 "a decision must be one of the question's allowed_replies";
    REPLY_DECISION_AND_TIME: "AAEP-6.3.1-2" error/error @7
        "decision must be accept or reject, and timestamp must be the RFC 3339 time of the person's decision" decisions ["C-A6", "C-D3"];
    RESPONSE_FITS: "AAEP-6.5.2-1" error/error @10
        "a response must be of a kind that the question accepts: a string, true or false, the value of a choice, or a number"
        decisions ["C-D6", "C-D7"] aliases ["AAEP-6.5.5-1"];
    RESPONSE_CHOICE: "AAEP-6.5.5-2" error/error @10 "a choice must be the value of one of the question's choices";
    REPLY_SUBSCRIPTION: "AAEP-6.3s-2" error/error @10 "a reply must name an active subscription" decisions ["C-C3"];
}
