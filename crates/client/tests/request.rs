//! Requests and responses over real sockets, with servers that misbehave.

#![cfg(all(feature = "http", feature = "websocket"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]

use std::time::Duration;

use client::{ClientError, HttpClient, HttpResponse, Url, send_request};
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// The bytes of a response, and a predicate for the expected error.
type BadResponseCase<'a> = (&'a [u8], fn(&ClientError) -> bool);

/// Starts a server that reads one request, sends these bytes and closes the connection. Returns a client for the
/// server, and the task that returns the request.
async fn start_server(response: &[u8]) -> (HttpClient, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/base", listener.local_addr().unwrap())).unwrap();
    let response = response.to_vec();
    let server_task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.windows(4).any(|window| window == b"\r\n\r\n") {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0);
        }
        stream.write_all(&response).await.unwrap();
        String::from_utf8(request).unwrap()
    });
    (HttpClient::new(url).with_token("sayso_secret").unwrap(), server_task)
}

async fn get(client: &HttpClient) -> Result<HttpResponse, ClientError> {
    let request = client.request(Method::GET, "/path").body("").unwrap();
    send_request(client.connect().await?, request).await
}

/// Returns the body that a client reads from a server that sends these bytes.
async fn read_text(response: &[u8]) -> Result<String, ClientError> {
    let (client, _server_task) = start_server(response).await;
    get(&client).await?.text(10, READ_TIMEOUT).await
}

#[tokio::test]
async fn the_token_is_sent_only_in_a_header() {
    let (client, server_task) =
        start_server(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n").await;
    assert_eq!(get(&client).await.unwrap().status, 302, "a redirect is not followed");
    let request = server_task.await.unwrap().to_ascii_lowercase();
    assert!(request.starts_with("get /base/path http/1.1\r\n"), "{request}");
    assert_eq!(request.matches("sayso_secret").count(), 1);
    assert!(request.contains("authorization: bearer sayso_secret\r\n"), "{request}");
    assert!(!format!("{client:?}").contains("sayso_secret"));
    for token in ["a b", "a\r\nb", "é"] {
        let result = HttpClient::new(client.url().clone()).with_token(token);
        assert!(matches!(result, Err(ClientError::InvalidToken)), "{token}");
    }
}

#[tokio::test]
async fn a_body_is_read_with_every_kind_of_framing() {
    for response in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
    ] {
        assert_eq!(read_text(response).await.unwrap(), "hello");
    }
    assert_eq!(read_text(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap(), "");
}

#[tokio::test]
async fn each_kind_of_invalid_response_returns_a_specific_error() {
    let long_head = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(20 * 1024));
    let cases: [BadResponseCase<'_>; 9] = [
        (b"", |error| matches!(error, ClientError::ClosedBeforeResponse)),
        (b"SSH-2.0-OpenSSH\r\n\r\n", |error| matches!(error, ClientError::NotHttp)),
        (b"\x15\x03\x01\x00\x02\x02\x46", |error| matches!(error, ClientError::UnexpectedTls)),
        (long_head.as_bytes(), |error| matches!(error, ClientError::TooLong)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", |error| {
            matches!(error, ClientError::ClosedInResponse)
        }),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", |error| {
            matches!(error, ClientError::ClosedInResponse)
        }),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", |error| {
            matches!(error, ClientError::Io(_))
        }),
        (b"HTTP/1.1 200 OK\r\n\r\n12345678901", |error| matches!(error, ClientError::TooLong)),
        (b"HTTP/1.1 200 OK\r\n\r\n\xff", |error| matches!(error, ClientError::NotUtf8)),
    ];
    for (response, is_expected) in cases {
        let error = read_text(response).await.unwrap_err();
        assert!(is_expected(&error), "{error:?} for {:?}", String::from_utf8_lossy(response));
    }
}

#[tokio::test]
async fn each_kind_of_failed_websocket_handshake_returns_a_specific_error() {
    let cases: [BadResponseCase<'_>; 3] = [
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", |error| {
            matches!(error, ClientError::WebSocketRejected(401))
        }),
        (b"SSH-2.0-OpenSSH\r\n\r\n", |error| matches!(error, ClientError::NotHttp)),
        (b"\x15\x03\x01\x00\x02\x02\x46", |error| matches!(error, ClientError::UnexpectedTls)),
    ];
    for (response, is_expected) in cases {
        let (client, _server_task) = start_server(response).await;
        let error = client.open_websocket("/ws", None, 1000).await.map(|_| ()).unwrap_err();
        assert!(is_expected(&error), "{error:?}");
    }
}
