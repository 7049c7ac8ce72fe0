//! Messages that agents and listeners send.

/// An agent's request for a confirmation. Its timeout of 134 seconds is announced as 2 minutes, even if a slow machine
/// announces it some seconds late. An extension to twice the timeout is announced as 4 minutes.
pub const CONFIRMATION_BODY: &str = r#"{"action":"Send 5 euros to Ben.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high","timeout_seconds":134,"default_decision":"reject","summary_normal":"May I send 5 euros to Ben?","tool":"send","arguments":{"amount":"5.00"}}"#;
/// The capabilities of a listener that answers questions.
pub const REPLY_CAPABILITIES: &str =
    r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true}"#;

pub fn subscription_request(capabilities: &str) -> String {
    format!(
        r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"test","capabilities":{capabilities}}}"#
    )
}

/// A subscription request that is always rejected, because of its version.
pub const UNSUPPORTED_VERSION_REQUEST: &str =
    r#"{"type":"subscription.request","aaep_version":"99.0.0","subscriber_id":"test","capabilities":{}}"#;

pub fn confirmation_reply(subscription: &str, token: &str, decision: &str) -> String {
    let timestamp = seal::Timestamp::from_unix_millis(std::time::SystemTime::now().into()).unwrap();
    format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"{decision}","subscription_id":"{subscription}","timestamp":"{timestamp}"}}"#
    )
}

pub fn clarification_reply(subscription: &str, token: &str, response: &str) -> String {
    let timestamp = seal::Timestamp::from_unix_millis(std::time::SystemTime::now().into()).unwrap();
    format!(
        r#"{{"type":"clarification.reply","reply_token":"{token}","response":"{response}","subscription_id":"{subscription}","timestamp":"{timestamp}"}}"#
    )
}

pub fn subscription_renegotiate(subscription: &str, capabilities: &str) -> String {
    format!(
        r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{capabilities}}}"#
    )
}

pub fn subscription_close(subscription: &str) -> String {
    format!(r#"{{"type":"subscription.close","subscription_id":"{subscription}"}}"#)
}

/// Returns the type of an event or message, without the common prefix of events.
pub fn short_type(message: &serde_json::Value) -> &str {
    message["type"].as_str().unwrap().trim_start_matches("aaep:agent.")
}
