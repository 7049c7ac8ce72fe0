//! What only a hub elsewhere can do: be unreachable, refuse a token, go away and come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::stage::{Kind, Person, Stage};
use sayso::{Action, Answer, Error, Hub, Stop};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Long enough for any machine; who waits for longer has found a fault.
const PATIENCE: Duration = Duration::from_mins(2);

/// A way to a hub that can be cut.
struct Way {
    address: String,
    /// It stays, cut or not: nobody else gets its port.
    listener: Arc<TcpListener>,
    /// What the hub says is lost on the way.
    loses: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Way {
    async fn to(hub: String) -> Self {
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap().to_string();
        let loses = Arc::<AtomicBool>::default();
        let task = tokio::spawn(carry(listener.clone(), hub, loses.clone()));
        Self { address, listener, loses, task }
    }

    /// Cuts every connection, and takes new ones.
    async fn cut(&mut self, hub: String) {
        self.task.abort();
        let _ = (&mut self.task).await;
        self.loses.store(false, Ordering::SeqCst);
        self.task = tokio::spawn(carry(self.listener.clone(), hub, self.loses.clone()));
    }
}

async fn carry(listener: Arc<TcpListener>, hub: String, loses: Arc<AtomicBool>) {
    let own = listener.local_addr().unwrap().to_string();
    let mut all = tokio::task::JoinSet::new();
    loop {
        let (mut from, _) = listener.accept().await.unwrap();
        let mut to = TcpStream::connect(&hub).await.unwrap();
        let (own, hub, loses) = (own.clone(), hub.clone(), loses.clone());
        all.spawn(async move {
            // The hub looks at the host that is asked for.
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(from.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap().replace(&own, &hub);
            to.write_all(head.as_bytes()).await.unwrap();
            let ((mut from, mut back), (mut answers, mut to)) = (from.split(), to.split());
            let there = tokio::io::copy(&mut from, &mut to);
            let back = async {
                let mut bytes = [0; 4096];
                loop {
                    match answers.read(&mut bytes).await {
                        Ok(0) | Err(_) => return,
                        Ok(_) if loses.load(Ordering::SeqCst) => {}
                        Ok(read) => back.write_all(&bytes[..read]).await.unwrap(),
                    }
                }
            };
            tokio::select! {
                _ = there => {}
                () = back => {}
            }
        });
    }
}

#[tokio::test]
async fn nobody_there_is_told_after_some_patience() {
    // A port that the system hands out to nobody.
    let hub = Hub::connect("http://127.0.0.1:1").patience(Duration::from_millis(200)).open().await;
    assert!(matches!(hub, Err(Error::Unreachable(_))), "{hub:?}");
}

#[tokio::test]
async fn a_token_that_is_none_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let admin = wire::auth::NewToken {
        name: "bank".to_owned(),
        role: hub::Role::Agent,
        agent_id: Some("bank".to_owned()),
        scope: hub::Scope::default(),
    };
    let token = wire::auth::Tokens::append(&tokens, &admin, &mut seal::SystemRandom).unwrap();
    let inside = Hub::embedded().listen("127.0.0.1:0").tokens(&tokens).open().unwrap();
    let url = format!("http://{}", inside.address().unwrap());
    let refused = Hub::connect(url.as_str()).token("sayso_wrong").open().await;
    assert_eq!(refused.err(), Some(Error::NotAllowed));
    let hub = Hub::connect(url).token(token.clone()).open().await.unwrap();
    hub.session("Pay.").start().await.unwrap().finish("Paid.").await.unwrap();
}

#[tokio::test]
async fn a_question_outlives_its_connection() {
    let stage = Stage::new(Kind::Embedded).await;
    let mut person = stage.person;
    let address = stage.hub.address().unwrap().to_string();
    let mut way = Way::to(address.clone()).await;
    let hub = Hub::connect(format!("http://{}", way.address)).open().await.unwrap();
    let session = hub.session("Pay Ben.").start().await.unwrap();
    let action = Action::new("send", "{}").says("Send.").consequence("Gone.").irreversible();
    let meanwhile = async {
        let asked = person.hears_until("awaiting.confirmation").await.pop().unwrap();
        way.cut(address.clone()).await;
        person.answers(&asked, "accept").await;
    };
    let both = async { tokio::join!(session.ask(action), meanwhile) };
    let (answer, ()) = tokio::time::timeout(PATIENCE, both).await.expect("the answer is told again");
    let Answer::Granted(granted) = answer.unwrap() else { panic!("it was accepted") };
    session.begin(granted).await.unwrap().done("Sent.").await.unwrap();
    session.finish("Sent.").await.unwrap();
    let heard = person.hears_until("session.completed").await;
    let called = heard.iter().filter(|event| event["type"] == "aaep:agent.tool.invoked").count();
    assert_eq!(called, 1);
}

#[tokio::test]
async fn what_was_not_answered_is_asked_again_and_done_once() {
    let stage = Stage::new(Kind::Embedded).await;
    let mut person = stage.person;
    let address = stage.hub.address().unwrap().to_string();
    let mut way = Way::to(address.clone()).await;
    let hub = Hub::connect(format!("http://{}", way.address)).open().await.unwrap();
    let session = hub.session("Pay Ben.").start().await.unwrap();
    way.loses.store(true, Ordering::SeqCst);
    let meanwhile = async {
        // It has happened, and the agent has not been told.
        person.hears_until("state.changed").await;
        way.cut(address.clone()).await;
    };
    let both = async { tokio::join!(session.think("Once."), meanwhile) };
    let (said, ()) = tokio::time::timeout(PATIENCE, both).await.expect("it is answered after all");
    said.unwrap();
    session.finish("Done.").await.unwrap();
    assert_eq!(person.hears().await["type"], "aaep:agent.session.completed");
}

#[tokio::test]
async fn a_hub_that_does_not_come_back_stops_the_session() {
    let stage = Stage::new(Kind::Embedded).await;
    let address = stage.hub.address().unwrap().to_string();
    let way = Way::to(address.clone()).await;
    let hub = Hub::connect(format!("http://{}", way.address));
    // Enough for a slow machine to get there at all.
    let hub = hub.patience(Duration::from_secs(5)).open().await.unwrap();
    let session = hub.session("Pay Ben.").start().await.unwrap();
    way.task.abort();
    drop(way.listener);
    assert_eq!(session.stopped().await, Stop::Unreachable);
    assert_eq!(session.think("On.").await, Err(Error::Stopped(Stop::Unreachable)));
    let again = hub.session("Once more.").start().await;
    assert!(matches!(again, Err(Error::Unreachable(_))), "{again:?}");
    let _: Person = stage.person;
}

#[tokio::test]
async fn a_hub_that_comes_back_without_its_memory_stops_the_session() {
    let (first, second) = (Stage::new(Kind::Embedded).await, Stage::new(Kind::Embedded).await);
    let (mut person, elsewhere) = (first.person, second.hub.address().unwrap().to_string());
    let mut way = Way::to(first.hub.address().unwrap().to_string()).await;
    let hub = Hub::connect(format!("http://{}", way.address)).open().await.unwrap();
    let session = hub.session("Pay Ben.").start().await.unwrap();
    let action = Action::new("send", "{}").says("Send.").consequence("Gone.").irreversible();
    let meanwhile = async {
        person.hears_until("awaiting.confirmation").await;
        way.cut(elsewhere).await;
    };
    let both = async { tokio::join!(session.ask(action), meanwhile) };
    let (answer, ()) = tokio::time::timeout(PATIENCE, both).await.expect("it does not wait for ever");
    assert_eq!(answer.err(), Some(Error::Stopped(Stop::Other)));
    assert_eq!(session.stopped().await, Stop::Other);
    // The way is good for the next one.
    hub.session("Pay Eve.").start().await.unwrap().finish("Paid.").await.unwrap();
}
