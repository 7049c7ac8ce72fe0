//! What a listener says, on whatever wire.

pub(crate) fn request(capabilities: &str) -> String {
    format!(
        r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"test","capabilities":{capabilities}}}"#
    )
}

/// A request that is always refused.
pub(crate) const FROM_THE_FUTURE: &str =
    r#"{"type":"subscription.request","aaep_version":"99.0.0","subscriber_id":"test","capabilities":{}}"#;

pub(crate) fn reply(subscription: &str, token: &str, decision: &str) -> String {
    let at = seal::Timestamp::from_unix_millis(std::time::SystemTime::now().into()).unwrap();
    format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"{decision}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    )
}

pub(crate) fn renegotiate(subscription: &str, capabilities: &str) -> String {
    format!(
        r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{capabilities}}}"#
    )
}

pub(crate) fn close(subscription: &str) -> String {
    format!(r#"{{"type":"subscription.close","subscription_id":"{subscription}"}}"#)
}

/// The type of an event or a message, without the beginning that all events have.
pub(crate) fn kind(message: &serde_json::Value) -> &str {
    message["type"].as_str().unwrap().trim_start_matches("aaep:agent.")
}
