//! Requests and responses over real sockets, with servers that misbehave.

#![cfg(all(feature = "http", feature = "websocket"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]

use std::time::Duration;

use client::{Error, HttpClient, Response, Url, send};
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const PATIENCE: Duration = Duration::from_mins(1);

/// The bytes of an answer, and whether an error is the right one for them.
type Case<'a> = (&'a [u8], fn(&Error) -> bool);

/// A server that reads one request, answers with these bytes and hangs up; a client of it.
async fn server(answer: &[u8]) -> (HttpClient, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/base", listener.local_addr().unwrap())).unwrap();
    let answer = answer.to_vec();
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0);
        }
        stream.write_all(&answer).await.unwrap();
        String::from_utf8(request).unwrap()
    });
    (HttpClient::new(url).with_token("sayso_secret").unwrap(), served)
}

async fn get(client: &HttpClient) -> Result<Response, Error> {
    let request = client.request(Method::GET, "/path").body("").unwrap();
    send(client.connect().await?, request).await
}

async fn text(answer: &[u8]) -> Result<String, Error> {
    let (client, _served) = server(answer).await;
    get(&client).await?.text(10, PATIENCE).await
}

#[tokio::test]
async fn the_token_is_in_a_header_and_nowhere_else() {
    let (client, served) = server(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n").await;
    assert_eq!(get(&client).await.unwrap().status, 302, "a redirect is not followed");
    let request = served.await.unwrap().to_ascii_lowercase();
    assert!(request.starts_with("get /base/path http/1.1\r\n"), "{request}");
    assert_eq!(request.matches("sayso_secret").count(), 1);
    assert!(request.contains("authorization: bearer sayso_secret\r\n"), "{request}");
    assert!(!format!("{client:?}").contains("sayso_secret"));
    for bad in ["a b", "a\r\nb", "é"] {
        let refused = HttpClient::new(client.url().clone()).with_token(bad);
        assert!(matches!(refused, Err(Error::InvalidToken)), "{bad}");
    }
}

#[tokio::test]
async fn a_body_is_read_however_it_is_framed() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
    ] {
        assert_eq!(text(answer).await.unwrap(), "hello");
    }
    assert_eq!(text(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap(), "");
}

#[tokio::test]
async fn what_is_wrong_with_a_response_is_told() {
    let long_head = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(20 * 1024));
    let answers: [Case<'_>; 9] = [
        (b"", |error| matches!(error, Error::ClosedBeforeResponse)),
        (b"SSH-2.0-OpenSSH\r\n\r\n", |error| matches!(error, Error::NotHttp)),
        (b"\x15\x03\x01\x00\x02\x02\x46", |error| matches!(error, Error::SpeaksTls)),
        (long_head.as_bytes(), |error| matches!(error, Error::TooLong)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", |error| {
            matches!(error, Error::ClosedInResponse)
        }),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", |error| {
            matches!(error, Error::ClosedInResponse)
        }),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", |error| {
            matches!(error, Error::Io(_))
        }),
        (b"HTTP/1.1 200 OK\r\n\r\n12345678901", |error| matches!(error, Error::TooLong)),
        (b"HTTP/1.1 200 OK\r\n\r\n\xff", |error| matches!(error, Error::NotUtf8)),
    ];
    for (answer, is_told) in answers {
        let error = text(answer).await.unwrap_err();
        assert!(is_told(&error), "{error:?} for {:?}", String::from_utf8_lossy(answer));
    }
}

#[tokio::test]
async fn a_server_that_opens_no_websocket_is_named() {
    let answers: [Case<'_>; 3] = [
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", |error| {
            matches!(error, Error::NoWebSocket(401))
        }),
        (b"SSH-2.0-OpenSSH\r\n\r\n", |error| matches!(error, Error::NotHttp)),
        (b"\x15\x03\x01\x00\x02\x02\x46", |error| matches!(error, Error::SpeaksTls)),
    ];
    for (answer, is_told) in answers {
        let (client, _served) = server(answer).await;
        let error = client.websocket("/ws", None, 1000).await.map(|_| ()).unwrap_err();
        assert!(is_told(&error), "{error:?}");
    }
}
