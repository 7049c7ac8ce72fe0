//! A producer's standard input and output (§B.6): JSON-RPC 2.0, one message per line.

use aaep::json::{JsonKind, JsonValue, Tape, write_object};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};

use super::Incoming;
use super::line_reader::{Line, LineReader};
use crate::client::ConnectionError;
use crate::client::follow::MAX_MESSAGE_BYTES;

/// JSON-RPC's error code for a method that does not exist.
const METHOD_NOT_FOUND: i64 = -32601;

/// Reads a producer's standard output.
pub(in crate::client) struct Reader(LineReader<ChildStdout>);

/// Writes to a producer's standard input.
pub(in crate::client) struct Writer {
    input: ChildStdin,
    last_id: u64,
}

impl Reader {
    pub(super) fn new(output: ChildStdout) -> Self {
        Self(LineReader::new(output, MAX_MESSAGE_BYTES))
    }

    pub(super) async fn next(&mut self) -> Result<Incoming, ConnectionError> {
        Ok(match self.0.next().await? {
            Line::Text(line) => parse_line(&line),
            Line::TooLong => Incoming::TooLong,
            Line::End => Incoming::End,
        })
    }
}

impl Writer {
    pub(super) fn new(input: ChildStdin) -> Self {
        Self { input, last_id: 0 }
    }

    /// Sends a message as the call that its type requires (§B.6.3).
    pub(super) async fn send(&mut self, text: &str) -> Result<(), ConnectionError> {
        let method = method_for(text);
        let needs_response = matches!(method, "aaep.subscribe" | "aaep.renegotiate");
        if needs_response {
            self.last_id += 1;
        }
        let id = self.last_id;
        self.send_line(&write_object(|writer| {
            writer.key("jsonrpc").text("2.0");
            if needs_response {
                writer.key("id").raw(&id.to_string());
            }
            writer.key("method").text(method);
            writer.key("params").raw(text);
        }))
        .await
    }

    /// Sends a complete JSON-RPC message.
    pub(super) async fn send_line(&mut self, json: &str) -> Result<(), ConnectionError> {
        self.input.write_all(format!("{json}\n").as_bytes()).await?;
        Ok(self.input.flush().await?)
    }
}

fn method_for(message: &str) -> &'static str {
    let mut tape = Tape::default();
    let kind = tape.read(message).ok().and_then(|doc| doc.root().member("type")?.text());
    match kind.as_deref() {
        Some("subscription.request") => "aaep.subscribe",
        Some("subscription.renegotiate") => "aaep.renegotiate",
        Some("subscription.close") => "aaep.close",
        _ => "aaep.reply",
    }
}

/// Parses a line. Text that is not JSON is a diagnostic: many programs print a greeting. An event without a JSON-RPC message around it
/// is accepted (C-E11).
fn parse_line(line: &str) -> Incoming {
    if line.is_empty() {
        return Incoming::Alive;
    }
    let mut tape = Tape::default();
    let diagnostic = || Incoming::Diagnostic(line.to_owned());
    let Ok(doc) = tape.read(line) else { return diagnostic() };
    let root = doc.root();
    if root.kind() != JsonKind::Object {
        return diagnostic();
    }
    if root.member("jsonrpc").is_none() {
        let is_message = root.member("type").is_some();
        return if is_message { Incoming::Message(line.to_owned()) } else { diagnostic() };
    }
    let id = root.member("id");
    let Some(method) = root.member("method").and_then(|method| method.text()) else {
        return parse_response(root);
    };
    let params = root.member("params").filter(|params| params.kind() == JsonKind::Object);
    match (&*method, id, params) {
        ("aaep.event" | "aaep.close" | "sayso.message", None, Some(params)) => {
            Incoming::Message(params.source().to_owned())
        }
        ("aaep.ping", Some(id), _) => Incoming::TransportReply(response(id.source(), "result", "{}")),
        (_, Some(id), _) => {
            let error = write_object(|writer| {
                writer.key("code").integer(METHOD_NOT_FOUND);
                writer.key("message").text("Method not found");
            });
            Incoming::TransportReply(response(id.source(), "error", &error))
        }
        (_, None, _) => Incoming::Alive,
    }
}

/// Parses the response to a call: its result is a message, its error a rejection.
fn parse_response(root: JsonValue<'_>) -> Incoming {
    if let Some(result) = root.member("result").filter(|result| result.member("type").is_some()) {
        return Incoming::Message(result.source().to_owned());
    }
    let message = root.member("error").and_then(|error| error.member("message")?.text());
    message.map_or(Incoming::Alive, |message| Incoming::CallFailed(crate::sanitize(&message, true)))
}

fn response(id: &str, member: &str, json: &str) -> String {
    write_object(|writer| {
        writer.key("jsonrpc").text("2.0");
        writer.key(member).raw(json);
        writer.key("id").raw(id);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_understood_by_its_method() {
        let message = |text: &str| Incoming::Message(text.to_owned());
        let event = r#"{"type":"aaep:agent.session.started"}"#;
        for (line, expected) in [
            (format!(r#"{{"jsonrpc":"2.0","method":"aaep.event","params":{event}}}"#), message(event)),
            (format!(r#"{{"jsonrpc":"2.0","method":"sayso.message","params":{event}}}"#), message(event)),
            (format!(r#"{{"jsonrpc":"2.0","id":1,"result":{event}}}"#), message(event)),
            (event.to_owned(), message(event)),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"aaep.ping"}"#.to_owned(),
                Incoming::TransportReply(r#"{"jsonrpc":"2.0","result":{},"id":"a"}"#.to_owned()),
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"aaep.sing"}"#.to_owned(),
                Incoming::TransportReply(
                    r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":7}"#
                        .to_owned(),
                ),
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602,\"message\":\"No\\u001b.\"}}"
                    .to_owned(),
                Incoming::CallFailed("No\\u{1b}.".to_owned()),
            ),
            (r#"{"jsonrpc":"2.0","method":"other.notification"}"#.to_owned(), Incoming::Alive),
            (String::new(), Incoming::Alive),
            ("Starting …".to_owned(), Incoming::Diagnostic("Starting …".to_owned())),
            ("[1]".to_owned(), Incoming::Diagnostic("[1]".to_owned())),
            (r#"{"level":"info"}"#.to_owned(), Incoming::Diagnostic(r#"{"level":"info"}"#.to_owned())),
        ] {
            assert_eq!(parse_line(&line), expected, "{line}");
        }
    }

    #[test]
    fn each_message_has_its_method() {
        for (kind, method) in [
            ("subscription.request", "aaep.subscribe"),
            ("subscription.renegotiate", "aaep.renegotiate"),
            ("subscription.close", "aaep.close"),
            ("confirmation.reply", "aaep.reply"),
            ("sayso:session.stop", "aaep.reply"),
        ] {
            assert_eq!(method_for(&format!(r#"{{"type":"{kind}"}}"#)), method);
        }
    }
}
