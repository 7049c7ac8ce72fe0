//! An agent's WebSocket keeps its sessions alive, and one lease longer; the clock is ours.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use aaep::event::Producer;
use futures_util::{SinkExt, StreamExt};
use hub::command::{Command, Reply};
use hub::delivery::LaneLimits;
use hub::{Core, Principal};
use journal::Memory;
use seal::UnixMillis;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};
use wire::{Bridge, Door, Limits, Server};

const LEASE: i64 = 300_000;
/// Long enough for any machine; who waits for longer has found a fault.
const PATIENCE: Duration = Duration::from_mins(2);

struct Hub {
    bridge: Bridge,
    clock: Arc<AtomicI64>,
    address: String,
}

type Socket = WebSocketStream<TcpStream>;

async fn hub(limits: &Limits) -> Hub {
    let clock = Arc::new(AtomicI64::new(1_767_603_600_000));
    let mut state = 7_u64;
    let random = move |bytes: &mut [u8]| {
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = state.to_be_bytes()[3];
        }
    };
    let now = clock.load(Ordering::Relaxed);
    let hub_limits = hub::Limits { lease: LEASE, ..hub::Limits::default() };
    let core = Core::new(
        Box::new(Memory::default()),
        Producer::new("hub"),
        hub_limits,
        random,
        UnixMillis::new(now),
    )
    .unwrap();
    let hands = clock.clone();
    let bridge =
        Bridge::start(core, LaneLimits::default(), move || UnixMillis::new(hands.load(Ordering::Relaxed)))
            .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = Server::new(bridge.clone(), Door::Open, *limits, vec![address.clone()], "{}".to_owned());
    tokio::spawn(Arc::new(server).serve(listener));
    Hub { bridge, clock, address }
}

impl Hub {
    async fn ask(&self, command: Command) -> Reply {
        self.bridge.ask(Principal::anybody(), command).await
    }

    /// A look; not on a line it is no sign of life.
    async fn is_open(&self, session: &str) -> bool {
        self.ask(Command::Follow { session: session_id(session) }).await != Reply::NotFound
    }

    async fn connect(&self) -> Socket {
        let stream = TcpStream::connect(&self.address).await.unwrap();
        client_async(format!("ws://{}/agent/v1/ws", self.address), stream).await.unwrap().0
    }
}

const START: &str = r#"{"summary_normal":"Moving money.","localization_hints":{"primary_language":"en"}}"#;

fn session_id(text: &str) -> aaep::SessionId {
    text.parse().unwrap()
}

fn session_of(json: &str) -> String {
    let from = json.find("sess_").unwrap();
    json[from..].split('"').next().unwrap().to_owned()
}

async fn call(socket: &mut Socket, method: &str, params: &str) -> String {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    socket.send(Message::text(text)).await.unwrap();
    let Message::Text(text) = socket.next().await.unwrap().unwrap() else { panic!() };
    text.as_str().to_owned()
}

#[tokio::test]
async fn a_socket_keeps_its_sessions_alive_and_one_lease_longer() {
    let hub = hub(&Limits::default()).await;
    let mut socket = hub.connect().await;
    let followed = session_of(&call(&mut socket, "session.start", START).await);
    let made = hub.ask(Command::Start { body: START.into(), key: None }).await;
    let left = session_of(&made.to_json().unwrap());
    let lasts = async {
        for _ in 0..3 {
            hub.clock.fetch_add(LEASE, Ordering::Relaxed);
            while hub.is_open(&left).await {}
            assert!(hub.is_open(&followed).await);
        }
        drop(socket);
        // As soon as the hub has noticed, one more lease is the last.
        while hub.is_open(&followed).await {
            hub.clock.fetch_add(LEASE, Ordering::Relaxed);
        }
    };
    tokio::time::timeout(PATIENCE, lasts).await.expect("the lease ends");
}

#[tokio::test]
async fn who_does_not_take_what_it_is_told_is_let_go_and_may_come_back() {
    let hub = hub(&Limits { untold: 0, calls: 1, ..Limits::default() }).await;
    let mut socket = hub.connect().await;
    let session = session_of(&call(&mut socket, "session.start", START).await);
    let hearing = tokio::spawn(async move {
        loop {
            match socket.next().await.unwrap().unwrap() {
                Message::Close(frame) => return u16::from(frame.unwrap().code),
                Message::Text(_) | Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    });
    // Nobody listens, so each question is resolved at once; sooner or later more of them than there is room for.
    let asking = async {
        while !hearing.is_finished() {
            let asked = (0..16).map(|number| {
                let text = format!(
                    r#"{{"action":"Send {number} euro.","consequence":"None.","irreversible":false,"risk_level":"low","timeout_seconds":120,"default_decision":"reject","summary_normal":"May I?"}}"#
                );
                hub.ask(Command::Ask { session: session_id(&session), body: text.into(), clarify: false, key: None })
            });
            let asked = futures_util::future::join_all(asked).await;
            assert!(
                asked.iter().all(|answer| matches!(
                    answer,
                    Reply::QuestionOpened { .. } | Reply::SessionStarted { .. }
                )),
                "{asked:?}"
            );
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.expect("it is let go");
    assert_eq!(hearing.await.unwrap(), 4000);
    let mut socket = hub.connect().await;
    let follow = format!(r#"{{"session_id":"{session}"}}"#);
    assert!(call(&mut socket, "session.follow", &follow).await.contains(r#""state":"thinking""#));
}
