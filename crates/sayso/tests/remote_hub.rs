//! Hubs that are unreachable, refuse a token, or disappear and return.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::fixture::{HubFixture, HubKind, TestListener};
use sayso::{Action, Answer, Error, Hub, StopReason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A time limit that is long enough on any machine. A longer wait means that the awaited result never comes.
const TEST_TIMEOUT: Duration = Duration::from_mins(2);

/// A TCP proxy to a hub whose connections can be cut.
pub(crate) struct FlakyProxy {
    pub(crate) address: String,
    /// Stays open while connections are cut, so that no other process gets its port.
    listener: Arc<TcpListener>,
    /// Whether the hub's replies are dropped.
    drops_replies: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl FlakyProxy {
    pub(crate) async fn start(hub: String) -> Self {
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap().to_string();
        let drops_replies = Arc::<AtomicBool>::default();
        let task = tokio::spawn(forward(listener.clone(), hub, drops_replies.clone()));
        Self { address, listener, drops_replies, task }
    }

    /// Cuts every connection and refuses new ones, like a hub that was killed.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// Cuts every connection and forwards new ones to this hub.
    async fn reset(&mut self, hub: String) {
        self.task.abort();
        let _ = (&mut self.task).await;
        self.drops_replies.store(false, Ordering::SeqCst);
        self.task = tokio::spawn(forward(self.listener.clone(), hub, self.drops_replies.clone()));
    }
}

async fn forward(listener: Arc<TcpListener>, hub: String, drops_replies: Arc<AtomicBool>) {
    let own_address = listener.local_addr().unwrap().to_string();
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut server = TcpStream::connect(&hub).await.unwrap();
        let (own_address, hub, drops_replies) = (own_address.clone(), hub.clone(), drops_replies.clone());
        connections.spawn(async move {
            // The hub checks the `Host` header, so it must contain the hub's address.
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap().replace(&own_address, &hub);
            server.write_all(head.as_bytes()).await.unwrap();
            let ((mut requests, mut client), (mut replies, mut server)) = (client.split(), server.split());
            let forwarding_requests = tokio::io::copy(&mut requests, &mut server);
            let forwarding_replies = async {
                let mut bytes = [0; 4096];
                loop {
                    match replies.read(&mut bytes).await {
                        Ok(0) | Err(_) => return,
                        Ok(_) if drops_replies.load(Ordering::SeqCst) => {}
                        Ok(length) => client.write_all(&bytes[..length]).await.unwrap(),
                    }
                }
            };
            tokio::select! {
                _ = forwarding_requests => {}
                () = forwarding_replies => {}
            }
        });
    }
}

#[tokio::test]
async fn an_unreachable_hub_is_reported_after_the_timeout() {
    // Nothing is listening on this port.
    let hub = Hub::connect("http://127.0.0.1:1").connect_timeout(Duration::from_millis(200)).open().await;
    assert!(matches!(hub, Err(Error::Unreachable(_))), "{hub:?}");
}

#[test]
fn a_token_for_the_agent_of_the_embedded_hub_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let new_token = wire::auth::NewToken {
        agent_id: Some("bank".to_owned()),
        ..wire::auth::NewToken::new("impostor", hub::Role::Agent, wire::unix_now())
    };
    wire::auth::Tokens::append(&tokens, &new_token, &mut seal::SystemRandom).unwrap();
    let hub = Hub::embedded().agent("bank").listen("127.0.0.1:0").tokens(&tokens).open();
    let taken = sayso::MalformedInput::AgentIdTaken("bank".to_owned());
    assert_eq!(hub.err(), Some(Error::Malformed(taken)));
}

#[tokio::test]
async fn an_invalid_token_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let new_token = wire::auth::NewToken {
        agent_id: Some("bank".to_owned()),
        ..wire::auth::NewToken::new("bank", hub::Role::Agent, wire::unix_now())
    };
    let token = wire::auth::Tokens::append(&tokens, &new_token, &mut seal::SystemRandom).unwrap();
    let embedded = Hub::embedded().listen("127.0.0.1:0").tokens(&tokens).open().unwrap();
    let url = format!("http://{}", embedded.address().unwrap());
    let refused = Hub::connect(url.as_str()).token("sayso_wrong").open().await;
    assert_eq!(refused.err(), Some(Error::AccessDenied));
    let hub = Hub::connect(url).token(token.clone()).open().await.unwrap();
    hub.session("Pay.").start().await.unwrap().finish("Paid.").await.unwrap();
}

#[tokio::test]
async fn a_question_survives_a_lost_connection() {
    let fixture = HubFixture::new(HubKind::Embedded).await;
    let mut listener = fixture.listener;
    let address = fixture.hub.address().unwrap().to_string();
    let mut proxy = FlakyProxy::start(address.clone()).await;
    let hub = Hub::connect(format!("http://{}", proxy.address)).open().await.unwrap();
    let session = hub.session("Pay Ben.").start().await.unwrap();
    let action = Action::new("send", "{}").says("Send.").consequence("Gone.").irreversible();
    let meanwhile = async {
        let question = listener.events_until("awaiting.confirmation").await.pop().unwrap();
        proxy.reset(address.clone()).await;
        listener.decide(&question, "accept").await;
    };
    let run_both = async { tokio::join!(session.ask(action), meanwhile) };
    let (answer, ()) =
        tokio::time::timeout(TEST_TIMEOUT, run_both).await.expect("the hub sends the answer again");
    let Answer::Granted(granted) = answer.unwrap() else { panic!("the question was not accepted") };
    session.start_call(granted).await.unwrap().succeed("Sent.").await.unwrap();
    session.finish("Sent.").await.unwrap();
    let events = listener.events_until("session.completed").await;
    let call_count = events.iter().filter(|event| event["type"] == "aaep:agent.tool.invoked").count();
    assert_eq!(call_count, 1);
}

#[tokio::test]
async fn an_unacknowledged_request_is_retried_and_applied_once() {
    let fixture = HubFixture::new(HubKind::Embedded).await;
    let mut listener = fixture.listener;
    let address = fixture.hub.address().unwrap().to_string();
    let mut proxy = FlakyProxy::start(address.clone()).await;
    let hub = Hub::connect(format!("http://{}", proxy.address)).open().await.unwrap();
    let session = hub.session("Pay Ben.").start().await.unwrap();
    proxy.drops_replies.store(true, Ordering::SeqCst);
    let meanwhile = async {
        // The hub has published the event, but the agent has not received the reply.
        listener.events_until("state.changed").await;
        proxy.reset(address.clone()).await;
    };
    let run_both = async { tokio::join!(session.think("Once."), meanwhile) };
    let (result, ()) = tokio::time::timeout(TEST_TIMEOUT, run_both).await.expect("the agent gets a reply");
    result.unwrap();
    session.finish("Done.").await.unwrap();
    assert_eq!(listener.next_event().await["type"], "aaep:agent.session.completed");
}

#[tokio::test]
async fn a_hub_that_does_not_return_stops_the_session() {
    let fixture = HubFixture::new(HubKind::Embedded).await;
    let address = fixture.hub.address().unwrap().to_string();
    let proxy = FlakyProxy::start(address.clone()).await;
    let hub = Hub::connect(format!("http://{}", proxy.address));
    // Long enough for a slow machine to connect at all.
    let hub = hub.connect_timeout(Duration::from_secs(5)).open().await.unwrap();
    let session = hub.session("Pay Ben.").start().await.unwrap();
    proxy.task.abort();
    drop(proxy.listener);
    assert_eq!(session.stopped().await, StopReason::Unreachable);
    assert_eq!(session.think("On.").await, Err(Error::Stopped(StopReason::Unreachable)));
    let again = hub.session("Once more.").start().await;
    assert!(matches!(again, Err(Error::Unreachable(_))), "{again:?}");
    let _: TestListener = fixture.listener;
}

#[tokio::test]
async fn a_hub_that_returns_without_its_journal_stops_the_session() {
    let (first, second) =
        (HubFixture::new(HubKind::Embedded).await, HubFixture::new(HubKind::Embedded).await);
    let (mut listener, other_address) = (first.listener, second.hub.address().unwrap().to_string());
    let mut proxy = FlakyProxy::start(first.hub.address().unwrap().to_string()).await;
    let hub = Hub::connect(format!("http://{}", proxy.address)).open().await.unwrap();
    let session = hub.session("Pay Ben.").start().await.unwrap();
    let action = Action::new("send", "{}").says("Send.").consequence("Gone.").irreversible();
    let meanwhile = async {
        listener.events_until("awaiting.confirmation").await;
        proxy.reset(other_address).await;
    };
    let run_both = async { tokio::join!(session.ask(action), meanwhile) };
    let (answer, ()) = tokio::time::timeout(TEST_TIMEOUT, run_both).await.expect("the agent stops waiting");
    assert_eq!(answer.err(), Some(Error::Stopped(StopReason::Other)));
    assert_eq!(session.stopped().await, StopReason::Other);
    // The connection works for the next session.
    hub.session("Pay Eve.").start().await.unwrap().finish("Paid.").await.unwrap();
}
