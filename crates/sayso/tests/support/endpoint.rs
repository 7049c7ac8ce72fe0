//! A small server that speaks chat completions, and says what a test tells it to say.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};

/// One answer, in the pieces in which it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    head: String,
    pieces: Vec<Vec<u8>>,
    then: Then,
}

/// What happens after the pieces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Then {
    /// The answer ends as it should.
    End,
    /// The connection is closed in the middle.
    Close,
    /// Nothing more comes, and the connection stays.
    Stall,
    /// The last piece comes again and again.
    Repeat,
}

impl Reply {
    /// A stream of events, each in a piece of its own.
    pub(crate) fn stream(events: impl IntoIterator<Item = Value>) -> Self {
        let pieces = events.into_iter().map(|event| format!("data: {event}\n\n").into_bytes()).collect();
        Self { head: head(200, "text/event-stream; charset=utf-8", ""), pieces, then: Then::End }
    }

    /// The model says this, a word at a time, and is done.
    pub(crate) fn says(words: &str) -> Self {
        let words = words.split_inclusive(' ').map(text);
        Self::stream(words.chain([finish("stop")])).done()
    }

    /// The model wants this tool, with these arguments as it writes them.
    pub(crate) fn calls(tool: &str, arguments: &str) -> Self {
        let call = json!([{"index": 0, "id": "c1", "type": "function", "function": {"name": tool, "arguments": arguments}}]);
        Self::stream([delta(&json!({ "role": "assistant", "tool_calls": call })), finish("tool_calls")])
            .done()
    }

    /// Bytes as they are, in one piece for each.
    pub(crate) fn raw(pieces: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self { pieces: pieces.into_iter().collect(), ..Self::stream([]) }
    }

    /// Something that is no stream.
    pub(crate) fn status(status: u16, kind: &str, headers: &str, body: &str) -> Self {
        Self { head: head(status, kind, headers), pieces: vec![body.as_bytes().to_vec()], then: Then::End }
    }

    /// Bytes that are no answer at all.
    pub(crate) fn nonsense(head: &str) -> Self {
        Self { head: head.to_owned(), ..Self::stream([]) }
    }

    pub(crate) fn done(mut self) -> Self {
        self.pieces.push(b"data: [DONE]\n\n".to_vec());
        self
    }

    pub(crate) fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }

    /// The same bytes, cut after every so many.
    pub(crate) fn cut(mut self, every: usize) -> Self {
        let all: Vec<u8> = self.pieces.concat();
        self.pieces = all.chunks(every).map(<[u8]>::to_vec).collect();
        self
    }

    /// The same with other ends of lines.
    pub(crate) fn lines_end(mut self, end: &str) -> Self {
        for piece in &mut self.pieces {
            *piece = String::from_utf8(piece.clone()).unwrap().replace('\n', end).into_bytes();
        }
        self
    }
}

pub(crate) fn delta(delta: &Value) -> Value {
    json!({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

pub(crate) fn text(words: &str) -> Value {
    delta(&json!({ "content": words }))
}

pub(crate) fn finish(reason: &str) -> Value {
    json!({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn head(status: u16, kind: &str, headers: &str) -> String {
    format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n{headers}\r\n")
}

/// A request as it came: its head, and its body.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Asked {
    /// What the model was told last.
    pub(crate) fn last(&self) -> &Value {
        self.body["messages"].as_array().unwrap().last().unwrap()
    }
}

/// The server. The last answer is given to all who ask after it.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Endpoint {
    pub(crate) async fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::start(replies, None).await
    }

    /// One that speaks TLS as `localhost`, and its certificate.
    pub(crate) async fn with_tls(replies: impl IntoIterator<Item = Reply>) -> (Self, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        (Self::start(replies, Some(Arc::new(config).into())).await, made.cert.pem())
    }

    async fn start(replies: impl IntoIterator<Item = Reply>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = match tls {
            Some(_) => format!("https://localhost:{port}/v1"),
            None => format!("http://127.0.0.1:{port}/v1"),
        };
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let replies = Arc::new(Mutex::new(replies.into_iter().collect::<VecDeque<_>>()));
        let note = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (note, replies, tls) = (note.clone(), replies.clone(), tls.clone());
                // Who hangs up in the middle ends its answer.
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => serve(tls.accept(stream).await?, &note, &replies).await,
                        None => serve(stream, &note, &replies).await,
                    }
                });
            }
        });
        Self { url, asked }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    asked: &Mutex<Vec<Asked>>,
    replies: &Mutex<VecDeque<Reply>>,
) -> std::io::Result<()> {
    while let Some(request) = read(&mut stream).await? {
        asked.lock().unwrap().push(request);
        let reply = {
            let mut replies = replies.lock().unwrap();
            if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() }
        };
        let reply = reply.expect("there is an answer");
        stream.write_all(reply.head.as_bytes()).await?;
        for piece in &reply.pieces {
            chunk(&mut stream, piece).await?;
        }
        match reply.then {
            Then::End => stream.write_all(b"0\r\n\r\n").await?,
            Then::Close => return stream.shutdown().await,
            Then::Stall => std::future::pending().await,
            Then::Repeat => loop {
                chunk(&mut stream, reply.pieces.last().unwrap()).await?;
            },
        }
    }
    Ok(())
}

async fn chunk(stream: &mut (impl AsyncWrite + Unpin), piece: &[u8]) -> std::io::Result<()> {
    if piece.is_empty() {
        return Ok(());
    }
    let framed = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
    stream.write_all(&framed).await
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Option<Asked>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
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
    let length: usize = length.expect("a length");
    while bytes.len() < end + 4 + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(Asked { head, body: serde_json::from_slice(&bytes[end + 4..end + 4 + length]).unwrap() }))
}
