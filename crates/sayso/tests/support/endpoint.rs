//! A small chat completions server with scripted replies.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};

/// One reply, in the pieces in which it is sent.
#[derive(Clone, Debug)]
pub(crate) struct ScriptedReply {
    head: String,
    pieces: Vec<Vec<u8>>,
    after: AfterReply,
}

/// The server's behaviour after the last piece of a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AfterReply {
    /// Ends the reply correctly.
    End,
    /// Closes the connection before the reply ends.
    Close,
    /// Keeps the connection open and sends nothing more.
    Stall,
    /// Repeats the last piece forever.
    Repeat,
}

impl ScriptedReply {
    /// A stream of events, each in its own piece.
    pub(crate) fn stream(events: impl IntoIterator<Item = Value>) -> Self {
        let pieces = events.into_iter().map(|event| format!("data: {event}\n\n").into_bytes()).collect();
        Self { head: head(200, "text/event-stream; charset=utf-8", ""), pieces, after: AfterReply::End }
    }

    /// A complete answer of the model, one word per event.
    pub(crate) fn from_text(answer: &str) -> Self {
        let words = answer.split_inclusive(' ').map(text);
        Self::stream(words.chain([finish("stop")])).with_done_marker()
    }

    /// A tool call of the model, with these arguments verbatim.
    pub(crate) fn from_tool_call(tool: &str, arguments: &str) -> Self {
        let call = json!([{"index": 0, "id": "c1", "type": "function", "function": {"name": tool, "arguments": arguments}}]);
        Self::stream([delta(&json!({ "role": "assistant", "tool_calls": call })), finish("tool_calls")])
            .with_done_marker()
    }

    /// A stream of raw bytes, one chunk per piece.
    pub(crate) fn raw(pieces: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self { pieces: pieces.into_iter().collect(), ..Self::stream([]) }
    }

    /// A reply that is not a stream.
    pub(crate) fn status(status: u16, content_type: &str, headers: &str, body: &str) -> Self {
        Self {
            head: head(status, content_type, headers),
            pieces: vec![body.as_bytes().to_vec()],
            after: AfterReply::End,
        }
    }

    /// A reply with an arbitrary head.
    pub(crate) fn with_raw_head(head: &str) -> Self {
        Self { head: head.to_owned(), ..Self::stream([]) }
    }

    pub(crate) fn with_done_marker(mut self) -> Self {
        self.pieces.push(b"data: [DONE]\n\n".to_vec());
        self
    }

    pub(crate) fn and_then(mut self, after: AfterReply) -> Self {
        self.after = after;
        self
    }

    /// Splits the same bytes into pieces of a fixed length.
    pub(crate) fn split_every(mut self, length: usize) -> Self {
        let bytes: Vec<u8> = self.pieces.concat();
        self.pieces = bytes.chunks(length).map(<[u8]>::to_vec).collect();
        self
    }

    /// Replaces the line endings.
    pub(crate) fn with_line_ending(mut self, end: &str) -> Self {
        for piece in &mut self.pieces {
            *piece = String::from_utf8(piece.clone()).unwrap().replace('\n', end).into_bytes();
        }
        self
    }
}

pub(crate) fn delta(delta: &Value) -> Value {
    json!({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

pub(crate) fn text(content: &str) -> Value {
    delta(&json!({ "content": content }))
}

pub(crate) fn finish(reason: &str) -> Value {
    json!({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn head(status: u16, content_type: &str, headers: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n{headers}\r\n"
    )
}

/// A recorded request.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl RecordedRequest {
    /// The last message sent to the model.
    pub(crate) fn last_message(&self) -> &Value {
        self.body["messages"].as_array().unwrap().last().unwrap()
    }
}

/// The server. It repeats the last reply for all further requests.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl Endpoint {
    pub(crate) async fn new(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        Self::start(replies, None).await
    }

    /// Starts a TLS server for `localhost` and returns it with its certificate.
    pub(crate) async fn with_tls(replies: impl IntoIterator<Item = ScriptedReply>) -> (Self, String) {
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(certificate.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(vec![certificate.cert.der().clone()], key).unwrap();
        (Self::start(replies, Some(Arc::new(config).into())).await, certificate.cert.pem())
    }

    async fn start(replies: impl IntoIterator<Item = ScriptedReply>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = match tls {
            Some(_) => format!("https://localhost:{port}/v1"),
            None => format!("http://127.0.0.1:{port}/v1"),
        };
        let requests = Arc::<Mutex<Vec<RecordedRequest>>>::default();
        let replies = Arc::new(Mutex::new(replies.into_iter().collect::<VecDeque<_>>()));
        let recorder = requests.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (recorder, replies, tls) = (recorder.clone(), replies.clone(), tls.clone());
                // A client that hangs up ends only its own reply.
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => serve(tls.accept(stream).await?, &recorder, &replies).await,
                        None => serve(stream, &recorder, &replies).await,
                    }
                });
            }
        });
        Self { url, requests }
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    requests: &Mutex<Vec<RecordedRequest>>,
    replies: &Mutex<VecDeque<ScriptedReply>>,
) -> std::io::Result<()> {
    while let Some(request) = read_request(&mut stream).await? {
        requests.lock().unwrap().push(request);
        let reply = {
            let mut replies = replies.lock().unwrap();
            if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() }
        };
        let reply = reply.expect("the endpoint has a reply");
        stream.write_all(reply.head.as_bytes()).await?;
        for piece in &reply.pieces {
            write_chunk(&mut stream, piece).await?;
        }
        match reply.after {
            AfterReply::End => stream.write_all(b"0\r\n\r\n").await?,
            AfterReply::Close => return stream.shutdown().await,
            AfterReply::Stall => std::future::pending().await,
            AfterReply::Repeat => loop {
                write_chunk(&mut stream, reply.pieces.last().unwrap()).await?;
            },
        }
    }
    Ok(())
}

async fn write_chunk(stream: &mut (impl AsyncWrite + Unpin), piece: &[u8]) -> std::io::Result<()> {
    if piece.is_empty() {
        return Ok(());
    }
    let framed = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
    stream.write_all(&framed).await
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Option<RecordedRequest>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let length: usize = length.expect("the request has a content-length");
    while bytes.len() < end + 4 + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(RecordedRequest {
        head,
        body: serde_json::from_slice(&bytes[end + 4..end + 4 + length]).unwrap(),
    }))
}
