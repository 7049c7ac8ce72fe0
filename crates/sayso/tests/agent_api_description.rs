//! `docs/agent-api.json` is what this client sends and what the hub accepts and sends back. The clients in other languages are generated
//! from it, so a difference between the three languages makes a test red.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use sayso::{Action, HandOff, HandOffTarget, Hub, LocalizedText, OutputText, Producer, Risk};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::{ClientRequestBuilder, Message};
use tokio_tungstenite::{accept_hdr_async, client_async};

use crate::public_api::event_fields::{publish_all_events, receive_all_events};
use crate::support::fixture::TestListener;

const DESCRIPTION: &str = include_str!("../../../docs/agent-api.json");
const SUBPROTOCOL: &str = "sayso.agent.v1";
const MANIFEST: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest","agent_id":"bank","agent_name":"Your bank","aaep_versions_supported":["1.0.0"],"conformance_levels_supported":[1,2,3],"transports_supported":["sse","websocket"]}"#;

/// Members of the description that the crate leaves to the hub.
const LEFT_TO_THE_HUB: [(&str, &str); 1] = [("aaep:agent.state.changed", "from_state")];

/// Requests of the description that the crate makes in another way: it writes outputs with `session.output`.
const NOT_SENT: [&str; 1] = ["aaep:agent.output.streaming"];

/// The messages that passed between a client and a hub.
#[derive(Clone, Default)]
struct Traffic {
    calls: Arc<Mutex<Vec<Value>>>,
    replies: Arc<Mutex<Vec<Value>>>,
    /// Cuts the open connections.
    cut: Arc<Notify>,
}

impl Traffic {
    /// Starts a proxy to a hub that records the messages, and returns its address.
    async fn record(&self, hub: String) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let traffic = self.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(traffic.clone().forward(stream, hub.clone()));
            }
        });
        address
    }

    async fn forward(self, stream: TcpStream, hub: String) {
        #[expect(clippy::result_large_err, clippy::unnecessary_wraps, reason = "the library wants this type")]
        fn with_subprotocol(_: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
            response.headers_mut().insert("sec-websocket-protocol", SUBPROTOCOL.parse().unwrap());
            Ok(response)
        }
        let mut client = accept_hdr_async(stream, with_subprotocol).await.unwrap();
        let uri = format!("ws://{hub}/agent/v1/ws").parse().unwrap();
        let request = ClientRequestBuilder::new(uri).with_sub_protocol(SUBPROTOCOL);
        let (mut server, _) = client_async(request, TcpStream::connect(&hub).await.unwrap()).await.unwrap();
        loop {
            tokio::select! {
                Some(Ok(message)) = client.next() => {
                    record(&self.calls, &message);
                    if server.send(message).await.is_err() { return }
                }
                Some(Ok(message)) = server.next() => {
                    record(&self.replies, &message);
                    if client.send(message).await.is_err() { return }
                }
                () = self.cut.notified() => return,
                else => return,
            }
        }
    }
}

fn record(log: &Mutex<Vec<Value>>, message: &Message) {
    if let Message::Text(text) = message {
        log.lock().unwrap().push(serde_json::from_str(text).unwrap());
    }
}

/// The description, with lookups of its parts.
struct Description(Value);

impl Description {
    fn operation(&self, method: &str) -> Option<&Value> {
        let id = &self.0["x-json-rpc"]["methods"][method];
        let paths = self.0["paths"].as_object().unwrap();
        paths.values().flat_map(|path| path.as_object().unwrap().values()).find(|it| it["operationId"] == *id)
    }

    fn schema(&self, reference: &Value) -> &Value {
        let name = reference["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        &self.0["components"]["schemas"][name]
    }

    /// Returns the members of an object and those that it must have.
    fn members(&self, schema: &Value) -> (BTreeSet<String>, BTreeSet<String>) {
        if schema.get("$ref").is_some() {
            return self.members(self.schema(schema));
        }
        let own = |key: &str| -> BTreeSet<String> {
            match &schema[key] {
                Value::Object(members) => members.keys().cloned().collect(),
                Value::Array(names) => names.iter().map(|it| it.as_str().unwrap().to_owned()).collect(),
                _ => BTreeSet::new(),
            }
        };
        let parts = schema["allOf"].as_array().into_iter().flatten().map(|part| self.members(part));
        parts.fold((own("properties"), own("required")), |(mut all, mut required), (more, needed)| {
            all.extend(more);
            required.extend(needed);
            (all, required)
        })
    }

    /// Returns the members of every request, by the event's type or the method.
    fn requests(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut requests = BTreeMap::new();
        for (method, _) in self.0["x-json-rpc"]["methods"].as_object().unwrap() {
            let Some(operation) = self.operation(method) else {
                requests.insert(method.clone(), BTreeSet::new());
                continue;
            };
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            let parameters = operation["parameters"].as_array().unwrap().iter();
            let in_query =
                parameters.filter(|it| it["in"] == "query").map(|it| it["name"].as_str().unwrap().to_owned());
            let members = match method.as_str() {
                "session.event" => {
                    for event in self.schema(body)["oneOf"].as_array().unwrap() {
                        let schema = self.schema(event);
                        let kind = schema["title"].as_str().unwrap().to_owned();
                        let (mut members, _) = self.members(schema);
                        // Questions can also be events, which nobody answers. Then they have a type.
                        members.insert("type".to_owned());
                        requests.insert(kind, members);
                    }
                    continue;
                }
                "session.output" => in_query.chain(["text".to_owned()]).collect(),
                "agent.manifest" => BTreeSet::from(["manifest".to_owned()]),
                _ if body.is_null() => BTreeSet::new(),
                _ => self.members(body).0,
            };
            requests.insert(method.clone(), members);
        }
        requests
    }

    /// Returns the schema of what the hub sends for a method or a notification.
    fn response(&self, name: &str) -> &Value {
        if let Some(operation) = self.operation(name) {
            let responses = operation["responses"].as_object().unwrap();
            let (_, success) = responses.iter().find(|(status, _)| *status != "default").unwrap();
            return &success["content"]["application/json"]["schema"];
        }
        &self.0["x-json-rpc"]["messages"][name]
    }
}

/// Makes every kind of request of the client.
async fn make_all_requests(hub: &Hub, person: &mut TestListener, traffic: &Traffic) {
    tokio::join!(publish_all_events(hub), receive_all_events(person));
    let text = LocalizedText::new("Planning a trip.").in_language("es", "Planeo un viaje.");
    let first = hub.session("A trip.").start().await.unwrap();
    let scout = Producer::new("scout").agent_name("Scout");
    let session = hub.session("Plan a trip.").says(text).producer(scout).parent(&first);
    let session = session.state("comparing", "Comparing prices.").start().await.unwrap();
    let scout = session.producer("scout");
    scout.think("Looking.").await.unwrap();
    scout.output(OutputText::complete("A train.")).await.unwrap();
    let output = OutputText::new("One. ").coalesce_hint(sayso::CoalesceHint::Sentence);
    session.output(output).await.unwrap();
    session.output(OutputText::complete("Two.").language("en").content_type("text/plain")).await.unwrap();
    let hand_off = HandOff::new(HandOffTarget::Human, "I may not decide that.")
        .urgency(Risk::High)
        .target_uri("tel:+47-555-0100")
        .timeout(std::time::Duration::from_secs(60));
    let (outcome, _) = tokio::join!(session.hand_off(hand_off), person.answer_next_hand_off("reject", None));
    outcome.unwrap();
    let invitation = session.invite_for("scout", std::time::Duration::from_secs(60)).await.unwrap();
    hub.join(&invitation).await.unwrap();
    // The answer is no longer awaited, so the question is withdrawn.
    let action = Action::new("send", r#"{"to":"Ben"}"#).says("Send 5 euros.").consequence("They are gone.");
    tokio::select! {
        answer = session.ask(action.tool_call_id("call_1").irreversible()) => panic!("answered: {}", answer.is_ok()),
        _ = person.events_until("awaiting.confirmation") => {}
    }
    session.think("Going on.").await.unwrap();
    traffic.cut.notify_waiters();
    session.finish("Planned.").await.unwrap();
    first.finish("Done.").await.unwrap();
}

#[tokio::test]
async fn the_description_is_what_this_client_sends_and_what_the_hub_accepts() {
    let embedded = Hub::embedded().agent("bank").listen("127.0.0.1:0").open().unwrap();
    let address = embedded.address().unwrap().to_string();
    let mut person = TestListener::listen(&address).await;
    // An unknown extension is a warning, which is expected here.
    person.ignore_rule("C-A12");
    let traffic = Traffic::default();
    let proxy = traffic.record(address).await;
    let hub = Hub::connect(format!("http://{proxy}")).agent_name("Your bank").manifest(MANIFEST);
    let hub = hub.open().await.unwrap();
    make_all_requests(&hub, &mut person, &traffic).await;

    let description = Description(serde_json::from_str(DESCRIPTION).unwrap());
    let described = description.requests();
    let mut sent: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut methods = BTreeMap::new();
    for call in traffic.calls.lock().unwrap().iter() {
        let method = call["method"].as_str().unwrap();
        methods.insert(call["id"].to_string(), method.to_owned());
        let params = call["params"].as_object().unwrap();
        if method == "session.event" {
            for event in params["events"].as_array().unwrap() {
                let kind = event["type"].as_str().unwrap();
                sent.entry(kind.to_owned())
                    .or_default()
                    .extend(event.as_object().unwrap().keys().map(|it| without_language(it)));
            }
            continue;
        }
        let is_addressing = |name: &str| ["session_id", "idempotency_key", "reply_token"].contains(&name);
        let members = params.keys().filter(|name| !is_addressing(name)).map(|it| without_language(it));
        sent.entry(method.to_owned()).or_default().extend(members);
    }
    let mut expected = described.clone();
    expected.retain(|name, _| !NOT_SENT.contains(&name.as_str()));
    for (request, member) in LEFT_TO_THE_HUB {
        assert!(expected.get_mut(request).unwrap().remove(member), "{request} {member}");
    }
    for (name, members) in &expected {
        let sent = sent.get(name).unwrap_or_else(|| panic!("{name} was not sent"));
        let missing: Vec<_> = members.difference(sent).collect();
        let unknown: Vec<_> = sent.difference(members).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "{name}: not sent {missing:?}, not described {unknown:?}"
        );
    }
    assert_eq!(sent.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());

    let mut received = BTreeSet::new();
    for reply in traffic.replies.lock().unwrap().iter() {
        let name =
            reply["method"].as_str().map_or_else(|| methods[&reply["id"].to_string()].clone(), str::to_owned);
        assert!(reply.get("error").is_none(), "{name}: {reply}");
        let content = reply.get("result").unwrap_or(&reply["params"]).as_object().unwrap();
        let (members, required) = description.members(description.response(&name));
        let names: BTreeSet<_> = content.keys().cloned().collect();
        assert!(names.is_subset(&members) && required.is_subset(&names), "{name}: {reply}");
        received.insert(name);
    }
    let described_methods = description.0["x-json-rpc"]["methods"].as_object().unwrap().keys();
    let not_received: Vec<_> = described_methods.filter(|method| !received.contains(*method)).collect();
    assert!(not_received.is_empty(), "the hub sent no result of {not_received:?}");
    assert!(received.contains("session.resolved"));
}

/// Returns the name of a member without its language: translations are not described one by one.
fn without_language(name: &str) -> String {
    name.strip_suffix("_es").unwrap_or(name).to_owned()
}

#[test]
fn a_request_that_the_description_lacks_would_be_noticed() {
    let mut description = Description(serde_json::from_str(DESCRIPTION).unwrap());
    let all = description.requests();
    assert!(all["session.ask"].contains("arguments") && all["session.output"].contains("coalesce_hint"));
    description.0["components"]["schemas"]["Confirmation"]["properties"]
        .as_object_mut()
        .unwrap()
        .remove("arguments");
    assert!(!description.requests()["session.ask"].contains("arguments"));
    assert_eq!(json!(all.len() > 15), json!(true), "{all:?}");
}
