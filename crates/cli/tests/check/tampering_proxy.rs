//! A proxy between the check and a real hub, which makes the hub break one rule.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// One rule that the hub seems to break.
#[derive(Clone)]
pub(super) struct Fault {
    pub(super) rule: &'static str,
    /// Changes a request to the hub, or answers it.
    on_request: fn(&mut Exchange) -> Option<(u16, Value)>,
    /// Changes the hub's response.
    on_response: fn(&mut Exchange, &mut u16, &mut Value),
    /// Changes an event, or removes it.
    on_event: fn(&mut Exchange, Value) -> Vec<Value>,
}

/// A request from the check, and the proxy's memory.
pub(super) struct Exchange {
    path: String,
    body: Value,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    /// The capabilities of each subscription, as they were requested.
    capabilities: HashMap<String, Value>,
    /// The subscription that receives questions and was opened last with a reply.
    answering: Option<String>,
    /// How often each question was answered with a valid reply.
    answers: HashMap<String, u32>,
    /// An event to show on the next occasion.
    injected: Option<&'static str>,
}

impl Exchange {
    fn is_reply(&self) -> bool {
        self.body["type"] == "confirmation.reply"
    }

    /// Whether this is the event stream of a subscription with this capability.
    fn capability(&self, name: &str) -> Value {
        let id = self.path.rsplit('=').next().unwrap_or_default();
        self.memory.lock().unwrap().capabilities.get(id).map_or(Value::Null, |all| all[name].clone())
    }
}

const NO_REQUEST: fn(&mut Exchange) -> Option<(u16, Value)> = |_| None;
const NO_RESPONSE: fn(&mut Exchange, &mut u16, &mut Value) = |_, _, _| {};
const NO_EVENT: fn(&mut Exchange, Value) -> Vec<Value> = |_, event| vec![event];

impl Fault {
    fn on_request(rule: &'static str, on_request: fn(&mut Exchange) -> Option<(u16, Value)>) -> Self {
        Self { rule, on_request, on_response: NO_RESPONSE, on_event: NO_EVENT }
    }

    fn on_response(rule: &'static str, on_response: fn(&mut Exchange, &mut u16, &mut Value)) -> Self {
        Self { rule, on_request: NO_REQUEST, on_response, on_event: NO_EVENT }
    }

    fn on_event(rule: &'static str, on_event: fn(&mut Exchange, Value) -> Vec<Value>) -> Self {
        Self { rule, on_request: NO_REQUEST, on_response: NO_RESPONSE, on_event }
    }

    /// An event lacks the text that people hear.
    pub(super) fn broken_event() -> Self {
        Self::on_event("AAEP-4.3.1-1", |_, mut event| {
            if event["type"] == "aaep:agent.tool.invoked" {
                event.as_object_mut().unwrap().remove("summary_normal");
            }
            vec![event]
        })
    }

    pub(super) fn all() -> Vec<Self> {
        vec![
            Self::on_response("AAEP-5.4.4-2", |_, _, body| {
                if body["honored_capabilities"]["max_events_per_second"] == 5 {
                    body["honored_capabilities"]["max_events_per_second"] = json!(50);
                }
            }),
            Self::on_request("AAEP-5.3.2-1", |exchange| {
                let is_unknown = !exchange.body["capabilities"]["acme"].is_null();
                is_unknown.then(|| (409, rejected("capabilities_incompatible")))
            }),
            Self::on_request("AAEP-5.4-1", |exchange| {
                let has_no_terms = exchange.body["capabilities"] == json!({});
                has_no_terms.then(|| (409, rejected("unknown")))
            }),
            Self::on_request("AAEP-5.2.1-1", |exchange| {
                if exchange.path.ends_with("/subscriptions") && exchange.body["capabilities"].is_null() {
                    exchange.body["capabilities"] = json!({});
                }
                None
            }),
            Self::on_request("AAEP-5.5.3-1", |exchange| {
                (exchange.body["aaep_version"] == "9.0.0").then(|| (409, rejected("unknown")))
            }),
            Self::on_request("AAEP-5.4s-3", |exchange| {
                if exchange.body["aaep_version"] == "9.0.0" {
                    exchange.body["aaep_version"] = json!("1.0.0");
                }
                None
            }),
            Self::on_response("AAEP-5.3.1.12-1", |_, _, body| {
                if body["honored_capabilities"]["accept_signed_manifests_only"] == true {
                    body.as_object_mut().unwrap().remove("signed_manifest");
                }
            }),
            Self::on_request("AAEP-5.7-1", |exchange| {
                let is_change = !exchange.body["capabilities"]["max_events_per_second"].is_null();
                (is_change && exchange.body["type"] == "subscription.renegotiate")
                    .then_some((204, Value::Null))
            }),
            Self::on_request("AAEP-9.5.1-6", |exchange| {
                exchange.path.contains("aaep-manifest").then(|| (404, json!({})))
            }),
            Self::on_response("AAEP-5.10.1-1", |exchange, _, body| {
                if exchange.path.contains("aaep-manifest") {
                    body.as_object_mut().unwrap().remove("aaep_versions_supported");
                }
            }),
            Self::on_response("AAEP-10.4.2-4", |exchange, _, body| {
                if exchange.path.contains("aaep-manifest") {
                    body["agent_id"] = json!("somebody-else");
                }
            }),
            Self::on_event("AAEP-5.5.4-1", |exchange, event| {
                let is_filtered = !exchange.capability("event_filters")["exclude"].is_null();
                if is_filtered && event["type"] == "aaep:agent.awaiting.confirmation" {
                    vec![]
                } else {
                    vec![event]
                }
            }),
            // The hub sends questions to a subscription that cannot answer.
            Self::on_request("AAEP-5.3.1.4-1", |exchange| {
                if exchange.body["capabilities"]["supports_confirmation_reply"] == false {
                    exchange.body["capabilities"]["supports_confirmation_reply"] = json!(true);
                }
                None
            })
            .hiding_reply_support(),
            Self::on_request("AAEP-6.3.4-7", |exchange| {
                // A reply for a foreign subscription counts as if it were for the right one.
                if exchange.is_reply() && exchange.body["subscription_id"] == FOREIGN_SUBSCRIPTION {
                    let memory = exchange.memory.lock().unwrap();
                    exchange.body["subscription_id"] = json!(memory.answering);
                }
                None
            }),
            Self::on_request("AAEP-6.3.4-8", |exchange| {
                exchange.body["forged"].as_bool().map(|_| (400, json!({ "title": "unknown member forged" })))
            }),
            // The agent learns the opposite of the answer.
            Self::on_request("AAEP-6.1-3", |exchange| {
                if exchange.body["decision"] == "reject" {
                    exchange.body["decision"] = json!("accept");
                }
                None
            }),
            Self::on_event("AAEP-9.4.1-3", |_, event| {
                if event["from_state"] == "awaiting_input" { vec![] } else { vec![event] }
            }),
            Self {
                on_request: |exchange| inject_after_answer(exchange, 2),
                ..Self::on_event("AAEP-6.3.5-1", show_injected)
            },
            Self {
                on_request: |exchange| inject_after_late_answer(exchange),
                ..Self::on_event("AAEP-6.3.4-4", show_injected)
            },
            Self::broken_event(),
        ]
    }

    /// Hides from the check that the hub granted more than was requested.
    fn hiding_reply_support(self) -> Self {
        let on_response: fn(&mut Exchange, &mut u16, &mut Value) = |_, _, body| {
            let levels = body.pointer("/honored_capabilities/supported_conformance_levels");
            if levels == Some(&json!([1])) {
                body["honored_capabilities"]["supports_confirmation_reply"] = json!(false);
            }
        };
        Self { on_response, ..self }
    }
}

/// The subscription of a forged reply.
const FOREIGN_SUBSCRIPTION: &str = "sub_00000000000000000000000000000000";

fn rejected(reason: &str) -> Value {
    json!({ "type": "subscription.rejected", "reason_code": reason, "reason_message": "No." })
}

/// After the reply with this number to one question, shows an event as if the reply had an effect.
fn inject_after_answer(exchange: &mut Exchange, number: u32) -> Option<(u16, Value)> {
    let mut memory = exchange.memory.lock().unwrap();
    if exchange.is_reply() && is_lawful(&exchange.body, &memory) {
        let token = exchange.body["reply_token"].as_str().unwrap().to_owned();
        let count = memory.answers.entry(token).or_default();
        *count += 1;
        if *count == number {
            memory.injected = Some("second");
        }
    }
    None
}

/// After the reply to the third question, which comes too late, shows an event as if it had an effect.
fn inject_after_late_answer(exchange: &mut Exchange) -> Option<(u16, Value)> {
    let mut memory = exchange.memory.lock().unwrap();
    if exchange.is_reply() && is_lawful(&exchange.body, &memory) {
        let token = exchange.body["reply_token"].as_str().unwrap().to_owned();
        *memory.answers.entry(token).or_default() += 1;
        if memory.answers.len() == 3 {
            memory.injected = Some("late");
        }
    }
    None
}

fn is_lawful(reply: &Value, memory: &Memory) -> bool {
    reply["forged"].is_null()
        && reply["decision"] != "defer"
        && reply["reply_token"] != "rpl_00000000000000000000000000000000"
        && reply["subscription_id"].as_str() == memory.answering.as_deref()
}

/// Shows a call of the tool before the next progress event.
fn show_injected(exchange: &mut Exchange, event: Value) -> Vec<Value> {
    let mut memory = exchange.memory.lock().unwrap();
    let is_main = memory.answering.as_ref().is_some_and(|id| exchange.path.ends_with(id));
    let is_due = is_main && event["type"] == "aaep:agent.progress.updated";
    if !is_due || memory.injected.take().is_none() {
        return vec![event];
    }
    let mut call = event.clone();
    call["type"] = json!("aaep:agent.tool.invoked");
    call["event_id"] = json!("evt_injected");
    call["tool"] = json!("sayso_check");
    call.as_object_mut().unwrap().remove("progress");
    vec![call, event]
}

pub(super) struct TamperingProxy {
    pub(super) address: String,
}

impl TamperingProxy {
    pub(super) fn start(hub: &str, fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (hub, memory) = (hub.to_owned(), Arc::new(Mutex::new(Memory::default())));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (hub, fault, memory) = (hub.clone(), fault.clone(), Arc::clone(&memory));
                // A connection that ends early does not matter here.
                std::thread::spawn(move || drop(forward(stream, &hub, &fault, memory)));
            }
        });
        Self { address }
    }
}

/// Reads the head of a request or response. Returns its first line and its headers.
fn read_head(reader: &mut impl BufRead) -> std::io::Result<(String, Vec<(String, String)>)> {
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { return Ok((first, headers)) };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
}

fn header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
}

fn forward(
    mut client: TcpStream,
    hub_address: &str,
    fault: &Fault,
    memory: Arc<Mutex<Memory>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (first, headers) = read_head(&mut reader)?;
    let mut hub = TcpStream::connect(hub_address)?;
    if header(&headers, "upgrade").is_some() {
        // The agent of the check talks over WebSocket. It is not examined.
        write!(hub, "{first}")?;
        for (name, value) in headers.iter().filter(|(name, _)| name != "host") {
            write!(hub, "{name}: {value}\r\n")?;
        }
        write!(hub, "host: {hub_address}\r\n")?;
        write!(hub, "\r\n")?;
        let (mut from_hub, mut to_client) = (hub.try_clone()?, client.try_clone()?);
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from_hub, &mut to_client);
            let _ = to_client.shutdown(std::net::Shutdown::Both);
        });
        std::io::copy(&mut reader, &mut hub)?;
        return hub.shutdown(std::net::Shutdown::Both);
    }
    let length = header(&headers, "content-length").map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut exchange = Exchange { path, body: serde_json::from_slice(&body).unwrap_or_default(), memory };
    let asked = exchange.body.clone();
    if let Some((status, answer)) = (fault.on_request)(&mut exchange) {
        return respond(&mut client, status, &answer);
    }
    let body = if exchange.body.is_null() { String::new() } else { exchange.body.to_string() };
    write!(hub, "{first}")?;
    for (name, value) in headers.iter().filter(|(name, _)| name != "content-length" && name != "host") {
        write!(hub, "{name}: {value}\r\n")?;
    }
    write!(hub, "host: {hub_address}\r\n")?;
    write!(hub, "content-length: {}\r\n\r\n{body}", body.len())?;
    exchange.body = asked;
    let mut from_hub = BufReader::new(hub);
    let (status_line, response_headers) = read_head(&mut from_hub)?;
    if header(&response_headers, "content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return forward_events(client, from_hub, &mut exchange, fault);
    }
    let mut text = String::new();
    match header(&response_headers, "content-length") {
        Some(length) => {
            let mut bytes = vec![0; length.parse().unwrap()];
            from_hub.read_exact(&mut bytes)?;
            text.push_str(&String::from_utf8(bytes).unwrap());
        }
        None => drop(from_hub.read_to_string(&mut text)?),
    }
    let mut status = status_line.split(' ').nth(1).unwrap().parse().unwrap();
    let mut answer = serde_json::from_str(&text).unwrap_or_default();
    remember(&exchange, &answer);
    (fault.on_response)(&mut exchange, &mut status, &mut answer);
    respond(&mut client, status, &answer)
}

/// Remembers what a subscription requested.
fn remember(exchange: &Exchange, answer: &Value) {
    let Some(id) = answer["subscription_id"].as_str() else { return };
    if !exchange.path.ends_with("/subscriptions") {
        return;
    }
    let mut memory = exchange.memory.lock().unwrap();
    let capabilities = exchange.body["capabilities"].clone();
    let is_main =
        capabilities["supports_confirmation_reply"] == true && capabilities["event_filters"].is_null();
    if is_main {
        memory.answering = Some(id.to_owned());
    }
    memory.capabilities.insert(id.to_owned(), capabilities);
}

fn respond(client: &mut TcpStream, status: u16, body: &Value) -> std::io::Result<()> {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!("HTTP/1.1 {status} Any\r\nconnection: close\r\n");
    // A response with the status 204 has no length.
    if status == 204 {
        return write!(client, "{head}\r\n");
    }
    write!(client, "{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{text}", text.len())
}

fn forward_events(
    mut client: TcpStream,
    hub: BufReader<TcpStream>,
    exchange: &mut Exchange,
    fault: &Fault,
) -> std::io::Result<()> {
    write!(client, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    let mut lines = hub.lines();
    let mut block = Vec::new();
    while let Some(line) = lines.next().transpose()? {
        if !line.is_empty() {
            block.push(line);
            continue;
        }
        let is_event = block.iter().any(|line| line == "event: aaep.event");
        let data = block.iter().find_map(|line| line.strip_prefix("data: "));
        match data.filter(|_| is_event).and_then(|data| serde_json::from_str(data).ok()) {
            None => write!(client, "{}\n\n", block.join("\n"))?,
            Some(event) => {
                for event in (fault.on_event)(exchange, event) {
                    let id = event["event_id"].as_str().unwrap_or_default();
                    write!(client, "event: aaep.event\nid: {id}\ndata: {event}\n\n")?;
                }
            }
        }
        block.clear();
    }
    Ok(())
}
