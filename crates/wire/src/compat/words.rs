//! What a message of the dialect is.

use aaep::json::{Kind, Tape, Value, Writer};

/// A message, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// Not AAEP at all: somebody asks for something, and a session is to begin.
    Request { text: String, user: Option<String> },
    /// A `subscription.request`: the terms of the connection are others from then on.
    Terms,
    /// `subscription.renegotiate`: likewise, by name.
    OtherTerms,
    /// `subscription.close`.
    Close,
    /// Anything else, a reply if all is well, and the question that it names.
    Reply { token: Option<String> },
}

/// Reads a message; `None` if it is not JSON.
pub(super) fn read(text: &str) -> Option<Words> {
    let mut tape = Tape::default();
    let root = tape.read(text).ok()?.root();
    if member(&root, "kind").as_deref() == Some("user_input") {
        return Some(Words::Request {
            text: member(&root, "text").unwrap_or_default(),
            user: member(&root, "user_id"),
        });
    }
    Some(match member(&root, "type").as_deref() {
        Some("subscription.request") => Words::Terms,
        Some("subscription.renegotiate") => Words::OtherTerms,
        Some("subscription.close") => Words::Close,
        _ => Words::Reply { token: member(&root, "reply_token") },
    })
}

/// Reads the body of `POST /sessions`; `None` if it is no such thing.
pub(super) fn session(text: &str) -> Option<(String, Option<String>)> {
    let mut tape = Tape::default();
    let root = tape.read(text).ok()?.root();
    let said = member(&root, "user_message").filter(|said| !said.trim().is_empty())?;
    Some((said, member(&root, "user_id")))
}

/// The same reply, which names this subscription, whatever it named before: clients of the dialect know no subscriptions, and
/// make names up (C-C2).
pub(super) fn speaking_for(subscription: &str, text: String) -> String {
    const NAME: &str = "subscription_id";
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(&text) else { return text };
    let root = doc.root();
    let names = || root.members().filter(|(name, _)| name.is(NAME));
    // What names two is malformed, and stays so.
    if root.kind() != Kind::Object || names().count() > 1 {
        return text;
    }
    let mut writer = Writer::with_capacity(text.len() + 64);
    writer.open_object();
    for (name, value) in root.members().filter(|(name, _)| !name.is(NAME)) {
        writer.key(&name.text().unwrap_or_default()).raw(value.source());
    }
    writer.key(NAME).text(subscription);
    writer.close_object();
    writer.finish()
}

fn member(root: &Value<'_>, name: &str) -> Option<String> {
    if root.kind() != Kind::Object {
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
    fn a_reply_names_the_subscription_of_its_connection() {
        for reply in [
            r#"{"type":"confirmation.reply","reply_token":"rpl_1"}"#,
            r#"{"type":"confirmation.reply","subscription_id":"1234abcd","reply_token":"rpl_1"}"#,
        ] {
            let spoken = speaking_for("sub_1", reply.to_owned());
            assert_eq!(text_of(&spoken, "subscription_id").as_deref(), Some("sub_1"));
            assert_eq!(text_of(&spoken, "reply_token").as_deref(), Some("rpl_1"));
        }
        let twice = r#"{"subscription_id":"sub_2","subscription_id":"sub_3"}"#;
        assert_eq!(speaking_for("sub_1", twice.to_owned()), twice);
        for other in ["[]", "1", "no JSON"] {
            assert_eq!(speaking_for("sub_1", other.to_owned()), other);
        }
    }

    #[test]
    fn messages_are_told_apart() {
        assert_eq!(read("{"), None);
        assert_eq!(read("[]"), Some(Words::Reply { token: None }));
        let request = Words::Request { text: "Hello".to_owned(), user: None };
        assert_eq!(read(r#"{"kind":"user_input","text":"Hello"}"#), Some(request));
        assert_eq!(read(r#"{"type":"subscription.request"}"#), Some(Words::Terms));
        assert_eq!(session(r#"{"user_message":" "}"#), None);
        assert_eq!(session(r#"{"user_message":"Hi"}"#), Some(("Hi".to_owned(), None)));
    }
}
