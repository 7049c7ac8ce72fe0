//! Standard input and output (§B.6): JSON-RPC 2.0, one message per line.

use aaep::json::{JsonKind, Tape};
use hub::Principal;
use hub::delivery::FrameKind;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::framing::{FrameError, FrameReader, MessageFraming};
use super::subscription_flow::{
    SUBSCRIPTION_CLOSE, SUBSCRIPTION_RENEGOTIATE, SUBSCRIPTION_REQUEST, close_message, message_type,
};
use super::{
    DisconnectReason, InboundItem, MessageSink, MessageSource, OutboundItem, WireLimits, run_subscription,
};
use crate::json_rpc;
use crate::server::Server;
use crate::telemetry::TransportKind;

/// Serves subscriptions one after the other until the input ends. The peer is the process that started the hub.
pub(crate) async fn run(
    server: &Server,
    input: impl AsyncRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin,
) {
    let mut source = FrameReader::new(input, MessageFraming::Lines, server.core.limits.stdio_bytes);
    let mut source = JsonRpcSource(&mut source);
    let mut sink = JsonRpcSink(output);
    let _listener_guard = server.hub.telemetry().track_listener(TransportKind::Stdio);
    let limits = WireLimits {
        first_message_timeout: None,
        ping_interval: None,
        max_malformed: None,
        write_timeout: server.core.limits.message_write_timeout,
    };
    while run_subscription(&server.hub, &Principal::local(), &limits, &mut source, &mut sink).await
        != DisconnectReason::ConnectionLost
    {}
}

/// The errors of JSON-RPC 2.0 (section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StdioRpcError {
    ParseError,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
}

impl StdioRpcError {
    fn code_and_message(self) -> (i64, &'static str) {
        match self {
            Self::ParseError => (json_rpc::PARSE_ERROR, "Parse error"),
            Self::InvalidRequest => (json_rpc::INVALID_REQUEST, "Invalid Request"),
            Self::MethodNotFound => (json_rpc::METHOD_NOT_FOUND, "Method not found"),
            Self::InvalidParams => (json_rpc::INVALID_PARAMS, "Invalid params"),
        }
    }

    /// Writes the error response. The id is null if it is unknown.
    fn to_response(self, id: Option<&str>) -> String {
        let (code, message) = self.code_and_message();
        let error = json_rpc::error(code, message, None);
        json_rpc::message(&[("error", &error), ("id", id.unwrap_or(json_rpc::NULL_ID))])
    }
}

struct JsonRpcSource<'r, R>(&'r mut FrameReader<R>);

impl<R: AsyncRead + Send + Unpin> MessageSource for JsonRpcSource<'_, R> {
    async fn receive(&mut self) -> InboundItem {
        match self.0.next().await {
            Ok(line) => match String::from_utf8(line) {
                Ok(line) => parse_request(&line),
                Err(_) => InboundItem::TransportReply(StdioRpcError::ParseError.to_response(None)),
            },
            Err(FrameError::TooLarge) => {
                InboundItem::TransportReply(StdioRpcError::InvalidRequest.to_response(None))
            }
            Err(FrameError::Eof) => InboundItem::End(DisconnectReason::ConnectionLost),
        }
    }
}

/// Parses a line as a JSON-RPC request.
fn parse_request(line: &str) -> InboundItem {
    let reply_with =
        |error: StdioRpcError, id: Option<&str>| InboundItem::TransportReply(error.to_response(id));
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(line) else { return reply_with(StdioRpcError::ParseError, None) };
    let root = doc.root();
    if root.kind() != JsonKind::Object {
        return reply_with(StdioRpcError::InvalidRequest, None);
    }
    let id = root.member("id");
    if id.as_ref().is_some_and(|id| !json_rpc::is_valid_id(id)) {
        return reply_with(StdioRpcError::InvalidRequest, None);
    }
    let id = id.map(|id| id.source());
    let method = root.member("method").and_then(|method| method.text());
    let Some(method) = method.filter(|_| json_rpc::is_version_2(&root)) else {
        let is_response = root.member("result").is_some() || root.member("error").is_some();
        return if is_response { InboundItem::Alive } else { reply_with(StdioRpcError::InvalidRequest, id) };
    };
    // A notification gets no response, even if it is invalid.
    let reject = |error| if id.is_some() { reply_with(error, id) } else { InboundItem::Alive };
    let params = root.member("params");
    let kind = params.and_then(message_type);
    let params = params.map(|params| params.source());
    let kind = kind.as_deref();
    let needs_response = match &*method {
        "aaep.ping" => {
            return id.map_or(InboundItem::Alive, |id| {
                InboundItem::TransportReply(json_rpc::message(&[("result", "{}"), ("id", id)]))
            });
        }
        "aaep.subscribe" if kind == Some(SUBSCRIPTION_REQUEST) => true,
        "aaep.renegotiate" if kind == Some(SUBSCRIPTION_RENEGOTIATE) => true,
        "aaep.close" if kind == Some(SUBSCRIPTION_CLOSE) => false,
        "aaep.reply"
            if kind.is_some_and(|kind| {
                ![SUBSCRIPTION_REQUEST, SUBSCRIPTION_RENEGOTIATE, SUBSCRIPTION_CLOSE].contains(&kind)
            }) =>
        {
            false
        }
        "aaep.subscribe" | "aaep.renegotiate" | "aaep.close" | "aaep.reply" => {
            return reject(StdioRpcError::InvalidParams);
        }
        _ => return reject(StdioRpcError::MethodNotFound),
    };
    match (params, id) {
        (Some(params), Some(id)) => {
            InboundItem::Message { text: params.to_owned(), request_id: Some(id.to_owned()) }
        }
        // A reply or a close may be a notification, because its outcome is not reported anyway (C-E13).
        (Some(params), None) if !needs_response => {
            InboundItem::Message { text: params.to_owned(), request_id: None }
        }
        _ => InboundItem::Alive,
    }
}

struct JsonRpcSink<W>(W);

impl<W: AsyncWrite + Send + Unpin> MessageSink for JsonRpcSink<W> {
    async fn transmit(&mut self, item: OutboundItem) -> bool {
        let notify = |method: &str, json: &str| json_rpc::message(&[("method", method), ("params", json)]);
        let line = match item {
            // The protocol has no method for a message that is not an event.
            OutboundItem::Frame(frame) if frame.kind() == FrameKind::Message => {
                notify(r#""sayso.message""#, frame.json())
            }
            OutboundItem::Frame(frame) => notify(r#""aaep.event""#, frame.json()),
            OutboundItem::Reply { json, request_id: Some(id) } => {
                json_rpc::message(&[("result", &json), ("id", &id)])
            }
            OutboundItem::InvalidMessage { request_id: Some(id) } => {
                StdioRpcError::InvalidParams.to_response(Some(&id))
            }
            OutboundItem::Raw(text) => text,
            OutboundItem::Close { reason, subscription: Some(subscription) }
                if reason != DisconnectReason::ClosedByPeer =>
            {
                notify(r#""aaep.close""#, &close_message(&subscription, reason))
            }
            OutboundItem::Reply { request_id: None, .. }
            | OutboundItem::InvalidMessage { request_id: None }
            | OutboundItem::Ping
            | OutboundItem::Close { .. } => {
                return true;
            }
        };
        let line = MessageFraming::Lines.encode(&line);
        self.0.write_all(&line).await.is_ok() && self.0.flush().await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome_of(line: &str) -> String {
        match parse_request(line) {
            InboundItem::TransportReply(text) => text,
            InboundItem::Message { text, request_id } => format!("{text} {request_id:?}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn each_error_has_its_code_and_notifications_get_no_response() {
        for (line, expected) in [
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
            assert_eq!(outcome_of(line), expected, "{line}");
        }
    }
}
