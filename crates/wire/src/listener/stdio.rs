//! Standard input and output (§B.6): JSON-RPC 2.0, a line each.

use aaep::json::{Kind, Tape};
use hub::Principal;
use hub::delivery::FrameKind;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::flow::{CLOSE, RENEGOTIATE, REQUEST, closing, type_of};
use super::frames::{Frames, Framing, NoMessage};
use super::{Ear, Ending, Heard, Manners, Mouth, Word, listen};
use crate::json_rpc;
use crate::observe::Wire;
use crate::server::Server;

/// One subscription after the other, until the input ends. Whoever has started the hub is at its other end.
pub(crate) async fn run(
    server: &Server,
    input: impl AsyncRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin,
) {
    let mut ear = Frames::new(input, Framing::Lines, server.limits.stdio_bytes);
    let mut ear = Requests(&mut ear);
    let mut mouth = Answers(output);
    let _here = server.bridge.observe().listens(Wire::Stdio);
    let manners = Manners { first: None, ping: None, malformed: None, patience: server.limits.message_time };
    while listen(&server.bridge, &Principal::anybody(), &manners, &mut ear, &mut mouth).await != Ending::Gone
    {
    }
}

/// JSON-RPC 2.0 §5.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    NotJson,
    NoRequest,
    NoMethod,
    Parameters,
}

impl Fault {
    fn words(self) -> (i64, &'static str) {
        match self {
            Self::NotJson => (json_rpc::PARSE_ERROR, "Parse error"),
            Self::NoRequest => (json_rpc::INVALID_REQUEST, "Invalid Request"),
            Self::NoMethod => (json_rpc::METHOD_NOT_FOUND, "Method not found"),
            Self::Parameters => (json_rpc::INVALID_PARAMS, "Invalid params"),
        }
    }

    /// The answer that tells it; a request whose name is not known is called null.
    fn answer(self, id: Option<&str>) -> String {
        let (code, message) = self.words();
        let error = json_rpc::error(code, message, None);
        json_rpc::message(&[("error", &error), ("id", id.unwrap_or(json_rpc::NULL))])
    }
}

struct Requests<'r, R>(&'r mut Frames<R>);

impl<R: AsyncRead + Send + Unpin> Ear for Requests<'_, R> {
    async fn hear(&mut self) -> Heard {
        match self.0.next().await {
            Ok(line) => match String::from_utf8(line) {
                Ok(line) => request(&line),
                Err(_) => Heard::Aside(Fault::NotJson.answer(None)),
            },
            Err(NoMessage::TooLarge) => Heard::Aside(Fault::NoRequest.answer(None)),
            Err(NoMessage::End) => Heard::End(Ending::Gone),
        }
    }
}

/// What a line asks for.
fn request(line: &str) -> Heard {
    let fault = |fault: Fault, id: Option<&str>| Heard::Aside(fault.answer(id));
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(line) else { return fault(Fault::NotJson, None) };
    let root = doc.root();
    if root.kind() != Kind::Object {
        return fault(Fault::NoRequest, None);
    }
    let id = root.member("id");
    if id.as_ref().is_some_and(|id| !json_rpc::is_id(id)) {
        return fault(Fault::NoRequest, None);
    }
    let id = id.map(|id| id.source());
    let method = root.member("method").and_then(|method| method.text());
    let Some(method) = method.filter(|_| json_rpc::is_version_2(&root)) else {
        let is_answer = root.member("result").is_some() || root.member("error").is_some();
        return if is_answer { Heard::Alive } else { fault(Fault::NoRequest, id) };
    };
    // A notification has no answer, whatever is wrong with it.
    let refuse = |why| if id.is_some() { fault(why, id) } else { Heard::Alive };
    let params = root.member("params");
    let kind = params.and_then(type_of);
    let params = params.map(|params| params.source());
    let kind = kind.as_deref();
    let answered = match &*method {
        "aaep.ping" => {
            return id
                .map_or(Heard::Alive, |id| Heard::Aside(json_rpc::message(&[("result", "{}"), ("id", id)])));
        }
        "aaep.subscribe" if kind == Some(REQUEST) => true,
        "aaep.renegotiate" if kind == Some(RENEGOTIATE) => true,
        "aaep.close" if kind == Some(CLOSE) => false,
        "aaep.reply" if kind.is_some_and(|kind| ![REQUEST, RENEGOTIATE, CLOSE].contains(&kind)) => false,
        "aaep.subscribe" | "aaep.renegotiate" | "aaep.close" | "aaep.reply" => {
            return refuse(Fault::Parameters);
        }
        _ => return refuse(Fault::NoMethod),
    };
    match (params, id) {
        (Some(params), Some(id)) => Heard::Message { text: params.to_owned(), to: Some(id.to_owned()) },
        // C-E13: what came of a reply is told to nobody.
        (Some(params), None) if !answered => Heard::Message { text: params.to_owned(), to: None },
        _ => Heard::Alive,
    }
}

struct Answers<W>(W);

impl<W: AsyncWrite + Send + Unpin> Mouth for Answers<W> {
    async fn say(&mut self, word: Word) -> bool {
        let notify = |method: &str, json: &str| json_rpc::message(&[("method", method), ("params", json)]);
        let line = match word {
            // The protocol has no method for what is no event.
            Word::Event(frame) if frame.kind() == FrameKind::Message => {
                notify(r#""sayso.message""#, frame.json())
            }
            Word::Event(frame) => notify(r#""aaep.event""#, frame.json()),
            Word::Answer { json, to: Some(id) } => json_rpc::message(&[("result", &json), ("id", &id)]),
            Word::Refused { to: Some(id) } => Fault::Parameters.answer(Some(&id)),
            Word::Aside(text) => text,
            Word::End { ending, subscription: Some(subscription) } if ending != Ending::Closed => {
                notify(r#""aaep.close""#, &closing(&subscription, ending))
            }
            Word::Answer { to: None, .. } | Word::Refused { to: None } | Word::Ping | Word::End { .. } => {
                return true;
            }
        };
        let line = Framing::Lines.wrap(&line);
        self.0.write_all(&line).await.is_ok() && self.0.flush().await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        match request(line) {
            Heard::Aside(text) => text,
            Heard::Message { text, to } => format!("{text} {to:?}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn each_fault_has_its_code_and_notifications_have_no_answer() {
        for (line, answer) in [
            ("{", r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}"#),
            ("[]", r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null}"#),
            (
                r#"{"id":7,"method":"aaep.ping"}"#,
                r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":7}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"aaep.sing"}"#,
                r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":"a"}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"aaep.subscribe","params":[1]}"#,
                r#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params"},"id":1}"#,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"aaep.ping"}"#, r#"{"jsonrpc":"2.0","result":{},"id":1}"#),
            (r#"{"jsonrpc":"2.0","method":"aaep.sing"}"#, "Alive"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "Alive"),
            (
                r#"{"jsonrpc":"2.0","method":"aaep.reply","params":{"type":"confirmation.reply"}}"#,
                r#"{"type":"confirmation.reply"} None"#,
            ),
        ] {
            assert_eq!(said(line), answer, "{line}");
        }
    }
}
