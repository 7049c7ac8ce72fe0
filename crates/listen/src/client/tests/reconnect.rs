//! When a lost connection is tried again.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::client::follow::follow_from;
use crate::client::{Address, Heard, send};

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
const TAKEN: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// A hub that has to be told each of its answers, and who follows it: by the pause alone it would come back tomorrow.
struct Hub {
    door: TcpListener,
    address: Address,
    heard: mpsc::Receiver<Heard>,
}

impl Hub {
    async fn is_followed() -> Self {
        let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::parse(&format!("http://{}", door.local_addr().unwrap()), None).unwrap();
        let (tell, heard) = mpsc::channel(8);
        let day = Duration::from_hours(24);
        tokio::spawn(follow_from(address.clone(), None, |_| "{}".to_owned(), tell, day));
        Self { door, address, heard }
    }

    /// Takes the next request, which must be this, answers it and hangs up.
    async fn answers(&self, expected: &str, answer: &str) {
        let request = async {
            let (mut stream, _) = self.door.accept().await.unwrap();
            let mut bytes = Vec::new();
            while !is_whole(&bytes) {
                assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let asked = timeout(Duration::from_mins(1), request).await;
        let asked = asked.unwrap_or_else(|_| panic!("{expected} did not come: it waits for its pause"));
        assert!(asked.starts_with(expected), "{asked}");
    }

    /// The stream is opened, and lost again.
    async fn is_lost(&mut self, route: &str) {
        self.answers(route, STREAM).await;
        while !matches!(self.heard.recv().await.unwrap(), Heard::Lost(_)) {}
    }
}

#[tokio::test]
async fn who_reached_the_hub_with_a_message_comes_back_at_once() {
    let mut hub = Hub::is_followed().await;
    hub.answers("POST /aaep/v1/subscriptions", NOT_FOUND).await;
    hub.is_lost("GET /events").await;
    let (sent, ()) = tokio::join!(send(&hub.address, "{}"), hub.answers("POST /", TAKEN));
    assert_eq!(sent, Ok(()));
    hub.answers("GET /events", STREAM).await;
}

#[tokio::test]
async fn who_was_forgotten_asks_for_a_new_subscription_at_once() {
    let mut hub = Hub::is_followed().await;
    let accepted = r#"{"type":"subscription.accepted","subscription_id":"sub_1","aaep_version":"1.0.0","producer":{"agent_id":"bank"},"honored_capabilities":{}}"#;
    let accepted = format!("HTTP/1.1 201 Created\r\nContent-Length: {}\r\n\r\n{accepted}", accepted.len());
    hub.answers("POST /aaep/v1/subscriptions", &accepted).await;
    hub.is_lost("GET /aaep/v1/events?subscription_id=sub_1").await;
    hub.address.try_now();
    hub.answers("GET /aaep/v1/events?subscription_id=sub_1", NOT_FOUND).await;
    hub.answers("POST /aaep/v1/subscriptions", &accepted).await;
    hub.answers("GET /aaep/v1/events?subscription_id=sub_1", STREAM).await;
}

/// Whether that is a whole request; all that is posted here are two bytes.
fn is_whole(bytes: &[u8]) -> bool {
    let end: &[u8] = if bytes.starts_with(b"POST") { b"\r\n\r\n{}" } else { b"\r\n\r\n" };
    bytes.ends_with(end)
}
