//! An agent's WebSocket keeps its sessions alive while it is open, and for one lease after it closes. The tests control
//! the clock.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use aaep::event::Producer;
use futures_util::{SinkExt, StreamExt};
use hub::command::{HubCommand, HubReply};
use hub::delivery::DeliveryLimits;
use hub::{Core, Principal};
use journal::MemoryJournal;
use seal::UnixMillis;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};
use wire::{AuthPolicy, HubHandle, Server, ServerLimits};

const LEASE_MS: i64 = 300_000;
/// How long to wait before a test fails. Even a slow machine needs much less.
const TEST_TIMEOUT: Duration = Duration::from_mins(2);

struct TestHub {
    handle: HubHandle,
    clock: Arc<AtomicI64>,
    address: String,
}

type AgentWebSocket = WebSocketStream<TcpStream>;

async fn start_hub(limits: &ServerLimits) -> TestHub {
    let clock = Arc::new(AtomicI64::new(1_767_603_600_000));
    let mut state = 7_u64;
    let random = move |bytes: &mut [u8]| {
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = state.to_be_bytes()[3];
        }
    };
    let now = clock.load(Ordering::Relaxed);
    let hub_limits = hub::HubLimits { lease_ms: LEASE_MS, ..hub::HubLimits::default() };
    let core = Core::new(
        Box::new(MemoryJournal::default()),
        Producer::new("hub"),
        hub_limits,
        random,
        UnixMillis::new(now),
    )
    .unwrap();
    let hub_clock = clock.clone();
    let handle = HubHandle::start(core, DeliveryLimits::default(), move || {
        UnixMillis::new(hub_clock.load(Ordering::Relaxed))
    })
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server =
        Server::new(handle.clone(), AuthPolicy::Open, *limits, vec![address.clone()], "{}".to_owned());
    tokio::spawn(Arc::new(server).serve(listener));
    TestHub { handle, clock, address }
}

impl TestHub {
    async fn ask(&self, command: HubCommand) -> HubReply {
        self.handle.ask(Principal::local(), command).await
    }

    /// Returns whether a session is open. The lookup does not renew the lease, because it has no agent connection.
    async fn is_open(&self, session: &str) -> bool {
        self.ask(HubCommand::Follow { session: session_id(session) }).await != HubReply::SessionEnded
    }

    async fn connect(&self) -> AgentWebSocket {
        let stream = TcpStream::connect(&self.address).await.unwrap();
        client_async(format!("ws://{}/agent/v1/ws", self.address), stream).await.unwrap().0
    }
}

const START: &str = r#"{"summary_normal":"Moving money.","localization_hints":{"primary_language":"en"}}"#;

fn session_id(text: &str) -> aaep::SessionId {
    text.parse().unwrap()
}

fn session_of(json: &str) -> String {
    let start = json.find("sess_").unwrap();
    json[start..].split('"').next().unwrap().to_owned()
}

async fn call(socket: &mut AgentWebSocket, method: &str, params: &str) -> String {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    socket.send(Message::text(text)).await.unwrap();
    let Message::Text(text) = socket.next().await.unwrap().unwrap() else { panic!() };
    text.as_str().to_owned()
}

#[tokio::test]
async fn a_socket_keeps_its_sessions_alive_for_one_lease_after_it_closes() {
    let hub = start_hub(&ServerLimits::default()).await;
    let mut socket = hub.connect().await;
    let followed = session_of(&call(&mut socket, "session.start", START).await);
    let reply = hub.ask(HubCommand::Start { body: START.into(), idempotency_key: None }).await;
    let unfollowed = session_of(&reply.to_json().unwrap());
    let expiry = async {
        for _ in 0..3 {
            hub.clock.fetch_add(LEASE_MS, Ordering::Relaxed);
            while hub.is_open(&unfollowed).await {}
            assert!(hub.is_open(&followed).await);
        }
        drop(socket);
        // After the hub notices the disconnect, the sessions last one more lease.
        while hub.is_open(&followed).await {
            hub.clock.fetch_add(LEASE_MS, Ordering::Relaxed);
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, expiry).await.expect("the lease must end");
}

#[tokio::test]
async fn an_agent_that_does_not_read_notifications_is_disconnected_and_can_reconnect() {
    let hub =
        start_hub(&ServerLimits { queued_notifications: 0, calls_in_flight: 1, ..ServerLimits::default() })
            .await;
    let mut socket = hub.connect().await;
    let session = session_of(&call(&mut socket, "session.start", START).await);
    let reading = tokio::spawn(async move {
        loop {
            match socket.next().await.unwrap().unwrap() {
                Message::Close(frame) => return u16::from(frame.unwrap().code),
                Message::Text(_) | Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    });
    // Nobody listens, so each question is resolved immediately, until more notifications are queued than allowed.
    let flooding = async {
        while !reading.is_finished() {
            let replies = (0..16).map(|number| {
                let text = format!(
                    r#"{{"action":"Send {number} euros.","consequence":"None.","irreversible":false,"risk_level":"low","timeout_seconds":120,"default_decision":"reject","summary_normal":"May I?"}}"#
                );
                hub.ask(HubCommand::Ask { session: session_id(&session), body: text.into(), is_clarification: false, idempotency_key: None })
            });
            let replies = futures_util::future::join_all(replies).await;
            assert!(
                replies.iter().all(|reply| matches!(
                    reply,
                    HubReply::QuestionOpened { .. } | HubReply::SessionStarted { .. }
                )),
                "{replies:?}"
            );
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, flooding).await.expect("the connection must be closed");
    assert_eq!(reading.await.unwrap(), 4000);
    let mut socket = hub.connect().await;
    let follow = format!(r#"{{"session_id":"{session}"}}"#);
    assert!(call(&mut socket, "session.follow", &follow).await.contains(r#""state":"thinking""#));
}
