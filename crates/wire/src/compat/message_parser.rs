//! Parses messages in compatibility mode.

use aaep::json::{JsonKind, JsonValue, JsonWriter, Tape};

/// A message in compatibility mode, reduced to what the hub needs to route it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CompatMessage {
    /// A person's request, which starts a session. Not an AAEP message.
    UserInput { text: String, user_id: Option<String> },
    /// `subscription.request`: the connection changes its subscription.
    Subscribe,
    /// `subscription.renegotiate`: changes the terms of a named subscription.
    Renegotiate,
    /// `subscription.close`.
    Close,
    /// Anything else, normally a reply, with the reply token of its question.
    Reply { token: Option<String> },
}

/// Parses a message. Returns `None` if it is not JSON.
pub(super) fn parse(text: &str) -> Option<CompatMessage> {
    let mut tape = Tape::default();
    let root = tape.read(text).ok()?.root();
    if member(&root, "kind").as_deref() == Some("user_input") {
        return Some(CompatMessage::UserInput {
            text: member(&root, "text").unwrap_or_default(),
            user_id: member(&root, "user_id"),
        });
    }
    Some(match member(&root, "type").as_deref() {
        Some("subscription.request") => CompatMessage::Subscribe,
        Some("subscription.renegotiate") => CompatMessage::Renegotiate,
        Some("subscription.close") => CompatMessage::Close,
        _ => CompatMessage::Reply { token: member(&root, "reply_token") },
    })
}

/// Parses the body of `POST /sessions` into the message text and the user id. Returns `None` if it is invalid.
pub(super) fn parse_session_request(text: &str) -> Option<(String, Option<String>)> {
    let mut tape = Tape::default();
    let root = tape.read(text).ok()?.root();
    let message_text =
        member(&root, "user_message").filter(|message_text| !message_text.trim().is_empty())?;
    Some((message_text, member(&root, "user_id")))
}

/// Sets the subscription id of a reply and removes any other, because the clients do not know their subscription ids and
/// invent some (C-C2).
pub(super) fn with_subscription_id(subscription: &str, text: String) -> String {
    const NAME: &str = "subscription_id";
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(&text) else { return text };
    let root = doc.root();
    let ids = || root.members().filter(|(name, _)| name.is_text(NAME));
    // A reply with two ids is malformed and is left unchanged, so that the hub rejects it.
    if root.kind() != JsonKind::Object || ids().count() > 1 {
        return text;
    }
    let mut writer = JsonWriter::with_capacity(text.len() + 64);
    writer.open_object();
    for (name, value) in root.members().filter(|(name, _)| !name.is_text(NAME)) {
        writer.key(&name.text().unwrap_or_default()).raw(value.source());
    }
    writer.key(NAME).text(subscription);
    writer.close_object();
    writer.finish()
}

fn member(root: &JsonValue<'_>, name: &str) -> Option<String> {
    if root.kind() != JsonKind::Object {
        return None;
    }
    Some(root.member(name)?.text()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(text: &str, name: &str) -> Option<String> {
        let mut tape = Tape::default();
        member(&tape.read(text).ok()?.root(), name)
    }

    #[test]
    fn a_reply_gets_the_subscription_id_of_its_connection() {
        for reply in [
            r#"{"type":"confirmation.reply","reply_token":"rpl_1"}"#,
            r#"{"type":"confirmation.reply","subscription_id":"1234abcd","reply_token":"rpl_1"}"#,
        ] {
            let rewritten = with_subscription_id("sub_1", reply.to_owned());
            assert_eq!(text_of(&rewritten, "subscription_id").as_deref(), Some("sub_1"));
            assert_eq!(text_of(&rewritten, "reply_token").as_deref(), Some("rpl_1"));
        }
        let repeated = r#"{"subscription_id":"sub_2","subscription_id":"sub_3"}"#;
        assert_eq!(with_subscription_id("sub_1", repeated.to_owned()), repeated);
        for other in ["[]", "1", "no JSON"] {
            assert_eq!(with_subscription_id("sub_1", other.to_owned()), other);
        }
    }

    #[test]
    fn messages_are_classified() {
        assert_eq!(parse("{"), None);
        assert_eq!(parse("[]"), Some(CompatMessage::Reply { token: None }));
        let user_input = CompatMessage::UserInput { text: "Hello".to_owned(), user_id: None };
        assert_eq!(parse(r#"{"kind":"user_input","text":"Hello"}"#), Some(user_input));
        assert_eq!(parse(r#"{"type":"subscription.request"}"#), Some(CompatMessage::Subscribe));
        assert_eq!(parse_session_request(r#"{"user_message":" "}"#), None);
        assert_eq!(parse_session_request(r#"{"user_message":"Hi"}"#), Some(("Hi".to_owned(), None)));
    }
}
