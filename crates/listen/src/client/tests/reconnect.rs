//! When a lost connection is retried.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::client::follow::follow_with_backoff;
use crate::client::{Address, ConnectionEvent, send};

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// A hub that gives one scripted response at a time, and a client that follows it. The client's backoff is a
/// day, so no retry in a test is caused by the backoff.
struct ScriptedHub {
    listener: TcpListener,
    address: Address,
    events: mpsc::Receiver<ConnectionEvent>,
}

impl ScriptedHub {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::parse(&format!("http://{}", listener.local_addr().unwrap()), None).unwrap();
        let (sender, events) = mpsc::channel(8);
        let day = Duration::from_hours(24);
        tokio::spawn(follow_with_backoff(address.clone(), None, |_| "{}".to_owned(), sender, day));
        Self { listener, address, events }
    }

    /// Accepts the next request, which must start with this text, responds and closes the connection.
    async fn expect_request(&self, expected: &str, response: &str) {
        let request = async {
            let (mut stream, _) = self.listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            while !is_complete_request(&bytes) {
                assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
            }
            stream.write_all(response.as_bytes()).await.unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let received = timeout(Duration::from_mins(1), request).await;
        let received = received.unwrap_or_else(|_| {
            panic!("{expected} did not arrive, because the client waits for its backoff")
        });
        assert!(received.starts_with(expected), "{received}");
    }

    /// Opens the stream and then drops it.
    async fn drop_stream(&mut self, route: &str) {
        self.expect_request(route, STREAM).await;
        while !matches!(self.events.recv().await.unwrap(), ConnectionEvent::Lost(_)) {}
    }
}

#[tokio::test]
async fn after_a_sent_message_the_client_reconnects_immediately() {
    let mut hub = ScriptedHub::start().await;
    hub.expect_request("POST /aaep/v1/subscriptions", NOT_FOUND).await;
    hub.drop_stream("GET /events").await;
    let (sent, ()) = tokio::join!(send(&hub.address, "{}"), hub.expect_request("POST /", NO_CONTENT));
    assert_eq!(sent, Ok(()));
    hub.expect_request("GET /events", STREAM).await;
}

#[tokio::test]
async fn a_client_whose_subscription_was_forgotten_subscribes_again_immediately() {
    let mut hub = ScriptedHub::start().await;
    let accepted = r#"{"type":"subscription.accepted","subscription_id":"sub_1","aaep_version":"1.0.0","producer":{"agent_id":"bank"},"honored_capabilities":{}}"#;
    let accepted = format!("HTTP/1.1 201 Created\r\nContent-Length: {}\r\n\r\n{accepted}", accepted.len());
    hub.expect_request("POST /aaep/v1/subscriptions", &accepted).await;
    hub.drop_stream("GET /aaep/v1/events?subscription_id=sub_1").await;
    hub.address.retry_now();
    hub.expect_request("GET /aaep/v1/events?subscription_id=sub_1", NOT_FOUND).await;
    hub.expect_request("POST /aaep/v1/subscriptions", &accepted).await;
    hub.expect_request("GET /aaep/v1/events?subscription_id=sub_1", STREAM).await;
}

/// Whether the bytes are a complete request. Every posted body here is `{}`.
fn is_complete_request(bytes: &[u8]) -> bool {
    let end: &[u8] = if bytes.starts_with(b"POST") { b"\r\n\r\n{}" } else { b"\r\n\r\n" };
    bytes.ends_with(end)
}
