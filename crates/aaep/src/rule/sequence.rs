//! Rules about order: what one event may follow, §4.5, chapter 6 and appendix A.

use super::rules;

rules! {
    // Bracketing (§4.1, §4.5.1)
    ONE_START_ONE_END: "AAEP-4.1-1" error/error @10
        "a session has one agent.session.started and one terminal event" also ["AAEP-A.8-1"];
    STARTED_FIRST: "AAEP-4.1.1-2" error/error @10 "agent.session.started is the first event of its session"
        also ["AAEP-9.3.1-1", "AAEP-4.1.1-3", "AAEP-3.2.4-2"];
    SESSION_ID_NEW: "AAEP-3.2.4-3" error/error @10 "a session_id is never used for a second session"
        also ["AAEP-2.2.5-1"];
    AFTER_END: "AAEP-4.5.1-1" error/error @10 "nothing follows the terminal event of a session"
        also ["AAEP-4.1.2-2", "AAEP-4.1.3-3", "AAEP-4.1.4-3"];
    COMPLETED_AFTER_FAILURE: "AAEP-4.1.2-3" error/error @10
        "agent.session.completed does not follow agent.session.errored or agent.session.cancelled";

    // Ids, numbers, time (§3.2, §3.4.1)
    EVENT_ID_UNIQUE: "AAEP-3.2.3-2" error/warning @10 "an event_id is used once";
    TIME_ORDER: "AAEP-3.2.5-7" error/error @10 "timestamps never decrease within a session";
    SEQUENCE_STEP: "AAEP-3.4.1-2" error/error @10 "sequence_number grows by 1 with each event of the session";
    SEQUENCE_ALL: "AAEP-3.4.1-3" error/error @10
        "sequence_number is on every event of a session or on none";

    // States (§4.2)
    FIRST_STATE: "AAEP-4.2.1-4" error/error @10 "the first agent.state.changed of a session comes from idle";
    STATE_CHAIN: "AAEP-4.2.1-5" error/error @10
        "from_state is the to_state before it, or the state that the last event implied" follows ["C-B7", "C-B8"];
    STATE_SHOWN: "AAEP-9.3.1-2" warning/warning @10
        "the states calling_tool and writing_output are entered by an agent.state.changed, not only implied"
        follows ["C-B7"] also ["AAEP-A.3-2"];
    PROGRESS_MERGED: "AAEP-4.2.2-5" warning/warning @10
        "progress in quick succession should be merged, for example to every 5 percent";

    // Tools (§4.3, §4.5.2)
    CALL_ID_UNIQUE: "AAEP-4.3.1-4" error/error @10
        "a tool_call_id is used for one call of the session, and stands on its completion too";
    TOOL_MATCHES: "AAEP-4.3.2-2" error/error @10 "agent.tool.completed names the tool that was invoked";
    TOOL_BEFORE_STATE: "AAEP-4.3.2-3" error/error @10
        "agent.tool.completed comes before the agent.state.changed that shows the state after the tool";
    TOOL_INVOKED_FIRST: "AAEP-4.5.2-1" error/error @10 "every agent.tool.completed has an agent.tool.invoked before it";
    CALL_ID_USED: "AAEP-4.5.2-2" warning/warning @10 "calls in parallel should have a tool_call_id each";
    TOOL_COMPLETED_ONCE: "AAEP-A.3-1" error/error @10 "every agent.tool.invoked has one agent.tool.completed, not two";
    TOOL_COMPLETED: "AAEP-9.3.1-4" error/error @10
        "every agent.tool.invoked has its agent.tool.completed before the session ends, with status timeout if it was abandoned"
        follows ["C-B10"] also ["AAEP-4.3.2-4"];

    // Output (§4.3.3, §4.5.4)
    POSITION: "AAEP-4.3.3-2" error/error @10
        "position is the number of characters (code points) already sent of this output" follows ["C-B11"];
    POSITION_FALLS: "AAEP-4.3.3s-2" error/error @10 "position never falls within an output"
        follows ["C-B11"] also ["AAEP-A.6-1"];
    OUTPUT_COMPLETED: "AAEP-4.5.4-1" error/error @10 "every output has one chunk with complete true"
        follows ["C-B10"] also ["AAEP-4.3.3-3"];
    OUTPUT_OVER: "AAEP-4.5.4-2" error/error @10 "no chunk follows the one with complete true";

    // Consent (§4.3.1, §4.5.3, chapter 6)
    IRREVERSIBLE_CONSENT: "AAEP-4.3.1-3" error/error @10
        "what is irreversible is invoked only after a confirmation for it was asked and accepted by a reply"
        follows ["C-B1", "C-B2", "C-B3"] also ["AAEP-4.4.1-1"];
    HIGH_RISK_CONSENT: "AAEP-2.3.5-1" error/error @10
        "what is of high risk is invoked only after a confirmation for it was accepted" follows ["C-B3"];
    BLOCKED: "AAEP-6.1-1" error/error @10 "an action waits until its confirmation is answered"
        also ["AAEP-2.2.14-1", "AAEP-6.1-4", "AAEP-6.3.4-2"];
    AFTER_REJECT: "AAEP-4.5.3-1" error/error @10
        "no action without an accepting reply, and none after a rejecting one" follows ["C-B1"] also ["AAEP-A.4-3", "AAEP-2.2.15-2", "AAEP-5.9-2", "AAEP-6.3.4-3", "AAEP-6.3.4-4", "AAEP-6.3.4-7", "AAEP-6.3.5-1", "AAEP-10.2.2-2"];
    MODIFIED_ACTION: "AAEP-6.3.2-1" error/error @10
        "an accepting reply with a modified_action counts as a rejecting one where modification is not supported";
    REJECT_SHOWN: "AAEP-4.5.3-3" error/error @10
        "a refused action is followed by an event that shows it, like agent.state.changed to thinking"
        also ["AAEP-6.1-2", "AAEP-6.1-3"];
    RESOLUTION_SHOWN: "AAEP-9.4.1-3" error/error @10
        "every answered or expired question is followed by an event that shows it" follows ["C-D9"] also ["AAEP-6.7.2-1", "AAEP-5.9-3"];
    ASKED_TWICE: "AAEP-6.1-5" error/error @10
        "an action is not asked about again while its first question is open";
    TOKEN_NEW: "AAEP-6.2.2-1" error/error @10 "a reply_token is never used for a second question"
        follows ["C-D4"] also ["AAEP-6.2.2-2"];
    DEFAULT_APPLIED: "AAEP-2.2.14-2" error/error @10 "when a question's time is over, its default is what holds"
        also ["AAEP-4.4.2-5"];
    DEFAULT_TIME: "AAEP-6.4-1" error/error @10
        "a question's time is over timeout_seconds after its timestamp, not before";
    AWAITING_SHOWN: "AAEP-A.4-1" warning/warning @10
        "a question is preceded by an agent.state.changed to awaiting_input" follows ["C-B7"];
    AWAITING_LEFT: "AAEP-A.4-2" warning/warning @10
        "an agent.state.changed leaves awaiting_input once a question is resolved";
    COUNTDOWN: "AAEP-6.4.3-1" warning/warning @10
        "a question of more than 60 seconds should be followed by progress at half and at a tenth of its time";

    // Replies as they arrive (§6.3, §6.5)
    REPLY_TOKEN_KNOWN: "AAEP-2.2.15-1" error/error @10 "a reply carries the reply_token of a question that was asked"
        also ["AAEP-6.2.3-1"];
    REPLY_ONCE: "AAEP-GS.5.3-1" warning/warning @10 "a question is answered once";
    REPLY_ALLOWED: "AAEP-6.3.4-6" error/error @10 "a decision is one of the question's allowed_replies";
    REPLY_TIME: "AAEP-6.3.1-2" error/error @7
        "decision is accept or reject, timestamp is the RFC 3339 time at which the person decided" follows ["C-A6", "C-D3"];
    RESPONSE_FITS: "AAEP-6.5.2-1" error/error @10
        "a response is of a kind that the question accepts: a string, true or false, a choice's value, or a number"
        follows ["C-D6", "C-D7"] also ["AAEP-6.5.5-1"];
    RESPONSE_CHOICE: "AAEP-6.5.5-2" error/error @10 "a choice is the value of one of the question's choices";
    REPLY_SUBSCRIPTION: "AAEP-6.3s-2" error/error @10 "a reply names a subscription that is active" follows ["C-C3"];
}
