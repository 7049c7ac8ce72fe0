//! The client and `docs/agent-api.json`, from which the messages of the other languages' packages are generated: what the client sends
//! and receives is recorded while it does everything that it can, and compared with the description. `public_api/event_fields.rs` shows
//! that it can set every field of an event.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{Sink, SinkExt, Stream, StreamExt};
use sayso::{Action, HandOff, HandOffTarget, Hub};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::{ClientRequestBuilder, Error, Message};
use tokio_tungstenite::{accept_async, client_async};

use crate::public_api::event_fields::{publish_all_events, receive_all_events};
use crate::support::fixture::TestListener;

const MANIFEST: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest","agent_id":"agent","agent_name":"Agent","aaep_versions_supported":["1.0.0"],"conformance_levels_supported":[1,2,3],"transports_supported":["sse","websocket"]}"#;

/// A time limit that is long enough on any machine.
const TEST_TIMEOUT: Duration = Duration::from_mins(2);

/// A member that JSON-RPC or every call has, and no schema describes.
const OF_EVERY_CALL: [&str; 3] = ["idempotency_key", "session_id", "reply_token"];

/// The methods of the calls of one connection that have no response yet, by their number.
type PendingCalls = Mutex<BTreeMap<u64, String>>;

/// The recorded messages, as method and content.
#[derive(Default)]
struct Messages {
    calls: Vec<(String, Value)>,
    results: Vec<(String, Value)>,
    notifications: Vec<(String, Value)>,
}

impl Messages {
    fn record(&mut self, text: &str, pending: &PendingCalls) {
        let message: Value = serde_json::from_str(text).unwrap();
        let (method, id) = (message["method"].as_str().map(str::to_owned), message["id"].as_u64());
        match (method, id) {
            (Some(method), Some(id)) => {
                pending.lock().unwrap().insert(id, method.clone());
                self.calls.push((method, message["params"].clone()));
            }
            (Some(method), None) => self.notifications.push((method, message["params"].clone())),
            (None, id) => {
                let method =
                    id.and_then(|id| pending.lock().unwrap().remove(&id)).expect("a response to a call");
                // An error is a problem document in any call.
                if message["error"].is_null() {
                    self.results.push((method, message["result"].clone()));
                }
            }
        }
    }
}

/// A proxy in front of a hub that records the messages of all WebSocket connections.
struct RecordingProxy {
    address: String,
    messages: Arc<Mutex<Messages>>,
    hub: String,
    listener: Arc<TcpListener>,
    task: JoinHandle<()>,
}

impl RecordingProxy {
    async fn start(hub: String) -> Self {
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let messages = Arc::<Mutex<Messages>>::default();
        let task = tokio::spawn(accept(listener.clone(), hub.clone(), messages.clone()));
        Self { address: listener.local_addr().unwrap().to_string(), messages, hub, listener, task }
    }

    /// Cuts every connection.
    async fn cut(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
        self.task = tokio::spawn(accept(self.listener.clone(), self.hub.clone(), self.messages.clone()));
    }
}

async fn accept(listener: Arc<TcpListener>, hub: String, messages: Arc<Mutex<Messages>>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (hub, messages) = (hub.clone(), messages.clone());
        connections.spawn(async move {
            let client = accept_async(stream).await.unwrap();
            let uri = format!("ws://{hub}/agent/v1/ws").parse().unwrap();
            let server = TcpStream::connect(&hub).await.unwrap();
            let (server, _) = client_async(ClientRequestBuilder::new(uri), server).await.unwrap();
            let ((to_client, from_client), (to_server, from_server)) = (client.split(), server.split());
            let pending = PendingCalls::default();
            tokio::select! {
                () = forward(from_client, to_server, &messages, &pending) => {}
                () = forward(from_server, to_client, &messages, &pending) => {}
            }
        });
    }
}

async fn forward(
    mut from: impl Stream<Item = Result<Message, Error>> + Unpin,
    mut to: impl Sink<Message> + Unpin,
    messages: &Mutex<Messages>,
    pending: &PendingCalls,
) {
    while let Some(Ok(message)) = from.next().await {
        if let Message::Text(text) = &message {
            messages.lock().unwrap().record(text, pending);
        }
        if to.send(message).await.is_err() {
            return;
        }
    }
}

struct Description(Value);

impl Description {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agent-api.json");
        Self(serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
    }

    fn methods(&self) -> BTreeSet<String> {
        self.0["x-json-rpc"]["methods"].as_object().unwrap().keys().cloned().collect()
    }

    /// Returns the operation of a method.
    fn operation(&self, method: &str) -> &Value {
        let id = &self.0["x-json-rpc"]["methods"][method];
        let paths = self.0["paths"].as_object().unwrap().values();
        let mut operations = paths.flat_map(|path| path.as_object().unwrap().values());
        operations.find(|operation| operation["operationId"] == *id).unwrap_or(&Value::Null)
    }

    /// Returns the reference to the schema of a method's result, or of a notification.
    fn result_schema(&self, method: &str) -> Value {
        let message = &self.0["x-json-rpc"]["messages"][method];
        if !message.is_null() {
            return message.clone();
        }
        let responses = self.operation(method)["responses"].as_object().unwrap();
        let (_, success) = responses.iter().find(|(status, _)| status.starts_with('2')).unwrap();
        success["content"]["application/json"]["schema"].clone()
    }

    fn body_schema(&self, method: &str) -> Value {
        self.operation(method)["requestBody"]["content"]["application/json"]["schema"].clone()
    }

    /// Returns the reference to the schema of an event.
    fn event_schema(&self, event_type: &str) -> Value {
        let references = self.0["components"]["schemas"]["AgentEvent"]["oneOf"].as_array().unwrap();
        let found = references.iter().find(|reference| self.resolve(reference)["title"] == event_type);
        found.unwrap_or_else(|| panic!("{event_type} is not described")).clone()
    }

    fn resolve(&self, schema: &Value) -> &Value {
        let path = schema["$ref"].as_str().unwrap_or_default().trim_start_matches('#');
        self.0.pointer(path).unwrap_or(&Value::Null)
    }

    /// Returns the members of an object that a schema describes.
    fn members(&self, schema: &Value) -> BTreeSet<String> {
        let resolved = if schema["$ref"].is_string() { self.resolve(schema) } else { schema };
        let parts = resolved["allOf"].as_array().into_iter().flatten().flat_map(|part| self.members(part));
        let own = resolved["properties"].as_object().into_iter().flat_map(|members| members.keys().cloned());
        own.chain(parts).collect()
    }

    /// Returns the members that a call can have.
    fn call_members(&self, method: &str) -> BTreeSet<String> {
        match method {
            // The body is not JSON.
            "session.output" => {
                let parameters = self.operation(method)["parameters"].as_array().unwrap().iter();
                let query = parameters.filter(|parameter| parameter["in"] == "query");
                let names = query.map(|parameter| parameter["name"].as_str().unwrap().to_owned());
                names.chain(["text".to_owned()]).collect()
            }
            "agent.manifest" => ["manifest".to_owned()].into(),
            "session.event" => ["events".to_owned()].into(),
            _ => self.members(&self.body_schema(method)),
        }
    }

    /// Checks a message with its schema. Returns its members.
    fn check(&self, name: &str, schema: &Value, message: &Value) -> BTreeSet<String> {
        let mut whole = schema.clone();
        whole["components"] = self.0["components"].clone();
        let validator = jsonschema::validator_for(&whole).unwrap();
        let errors: Vec<_> = validator.iter_errors(message).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?} in {message}");
        let members = message.as_object().unwrap().keys();
        // Translations have the language at the end.
        members.map(|name| name.strip_suffix("_es").unwrap_or(name).to_owned()).collect()
    }
}

/// Everything besides the events.
async fn do_the_rest(hub: &Hub, other: &Hub, proxy: &mut RecordingProxy, person: &mut TestListener) {
    let text = sayso::LocalizedText::new("Everything.").in_language("es", "Todo.");
    let session = hub.session("Everything.").says(text).producer("scout").start().await.unwrap();
    let invitation = session.invite("guide").await.unwrap();
    let guide = other.join(&invitation).await.unwrap();
    guide.think("I help.").await.unwrap();
    let (answer, _) = tokio::join!(
        session.hand_off(HandOff::new(HandOffTarget::Human, "Please.").timeout(Duration::from_mins(1))),
        person.answer_next_hand_off("acknowledge", None)
    );
    answer.unwrap();
    // A question that is not waited for any longer is withdrawn.
    let mut asking = Box::pin(
        session.ask(Action::new("wipe", "{}").says("Wipe.").consequence("It is gone.").irreversible()),
    );
    tokio::select! {
        answer = &mut asking => panic!("nobody answers: {answer:?}"),
        _ = person.events_until("awaiting.confirmation") => {}
    }
    drop(asking);
    person.events_until("state.changed").await;
    // After a cut, the client follows its sessions again.
    proxy.cut().await;
    session.think("I am back.").await.unwrap();
    person.stop_session(session.id()).await;
    session.stopped().await;
}

#[tokio::test]
async fn everything_that_the_client_sends_and_receives_is_described() {
    let embedded = Hub::embedded().agent("bank").listen("127.0.0.1:0").open().unwrap();
    let address = embedded.address().unwrap().to_string();
    let mut person = TestListener::listen(&address).await;
    person.ignore_rule("C-A12");
    let mut proxy = RecordingProxy::start(address).await;
    let connect = |name: &str| Hub::connect(format!("http://{}", proxy.address)).agent_name(name);
    let hub = connect("Your bank").agent_version("1.2.0").model("a-model").manifest(MANIFEST);
    let hub = hub.manifest_uri("https://bank.example/manifest.json").open().await.unwrap();
    let other = connect("Guide").open().await.unwrap();
    tokio::join!(publish_all_events(&hub), receive_all_events(&mut person));
    let rest = do_the_rest(&hub, &other, &mut proxy, &mut person);
    tokio::time::timeout(TEST_TIMEOUT, rest).await.unwrap();

    let description = Description::read();
    let messages = proxy.messages.lock().unwrap();
    let used: BTreeSet<_> = messages.calls.iter().map(|(method, _)| method.clone()).collect();
    assert_eq!(used, description.methods(), "every method is used, and no other");

    let mut sent = BTreeMap::<String, BTreeSet<String>>::new();
    for (method, params) in &messages.calls {
        let mut body = params.clone();
        body.as_object_mut().unwrap().retain(|name, _| !OF_EVERY_CALL.contains(&name.as_str()));
        let members = sent.entry(method.clone()).or_default();
        members.extend(body.as_object().unwrap().keys().map(|name| name.trim_end_matches("_es").to_owned()));
        if !description.body_schema(method)["$ref"].is_null()
            && method != "session.event"
            && method != "agent.manifest"
        {
            description.check(method, &description.body_schema(method), &body);
        }
        for event in body["events"].as_array().into_iter().flatten() {
            let event_type = event["type"].as_str().unwrap();
            let members = description.check(event_type, &description.event_schema(event_type), event);
            sent.entry(event_type.to_owned()).or_default().extend(members);
        }
    }
    for (name, members) in &sent {
        let described = match name.strip_prefix("aaep:") {
            Some(_) => description.members(&description.event_schema(name)),
            None => description.call_members(name),
        };
        let unknown: Vec<_> =
            members.iter().filter(|name| !described.contains(*name) && *name != "type").collect();
        assert!(unknown.is_empty(), "{name} has members that are not described: {unknown:?}");
    }

    for (method, result) in messages.results.iter().chain(&messages.notifications) {
        let schema = description.result_schema(method);
        if schema["$ref"].is_null() {
            continue;
        }
        let members = description.check(method, &schema, result);
        let unknown: Vec<_> = members.difference(&description.members(&schema)).cloned().collect();
        assert!(unknown.is_empty(), "{method} returns members that are not described: {unknown:?}");
    }
    let notified: BTreeSet<_> = messages.notifications.iter().map(|(method, _)| method.as_str()).collect();
    let described = description.0["x-json-rpc"]["notifications"].as_array().unwrap();
    assert_eq!(notified, described.iter().map(|name| name.as_str().unwrap()).collect());
}
