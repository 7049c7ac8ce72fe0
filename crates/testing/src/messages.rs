//! Messages of agents and listeners.

/// A question of an agent. Its timeout is announced as 2 minutes even some seconds later on a slow machine, and twice as much
/// as 4.
pub const QUESTION: &str = r#"{"action":"Send 5 euro to Ben.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high","timeout_seconds":134,"default_decision":"reject","summary_normal":"May I send 5 euro to Ben?","tool":"send","arguments":{"amount":"5.00"}}"#;
/// The capabilities of a listener that answers questions.
pub const CAN_REPLY: &str = r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true}"#;

pub fn request(capabilities: &str) -> String {
    format!(
        r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"test","capabilities":{capabilities}}}"#
    )
}

/// A request that is always refused.
pub const FROM_THE_FUTURE: &str =
    r#"{"type":"subscription.request","aaep_version":"99.0.0","subscriber_id":"test","capabilities":{}}"#;

pub fn reply(subscription: &str, token: &str, decision: &str) -> String {
    let at = seal::Timestamp::from_unix_millis(std::time::SystemTime::now().into()).unwrap();
    format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"{decision}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    )
}

pub fn renegotiate(subscription: &str, capabilities: &str) -> String {
    format!(
        r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{capabilities}}}"#
    )
}

pub fn close(subscription: &str) -> String {
    format!(r#"{{"type":"subscription.close","subscription_id":"{subscription}"}}"#)
}

/// The type of an event or a message, without the beginning that all events have.
pub fn kind(message: &serde_json::Value) -> &str {
    message["type"].as_str().unwrap().trim_start_matches("aaep:agent.")
}
