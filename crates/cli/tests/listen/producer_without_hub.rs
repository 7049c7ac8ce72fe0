//! A producer without a hub: no handshake, SSE messages without an `event:` field over chunked transfer encoding, replies to
//! `/messages`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::Value;

use testing::terminal::ListenProcess;

/// A producer that behaves like AAEP's own packages.
struct FakeProducer {
    address: String,
    streams: Receiver<TcpStream>,
    replies: Receiver<Value>,
}

impl FakeProducer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let ((stream_tx, streams), (reply_tx, replies)) = (channel(), channel());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                serve(stream, &stream_tx, &reply_tx);
            }
        });
        Self { address, streams, replies }
    }

    fn next_stream(&self) -> TcpStream {
        self.streams.recv_timeout(Duration::from_mins(2)).unwrap()
    }
}

fn serve(mut stream: TcpStream, stream_tx: &Sender<TcpStream>, reply_tx: &Sender<Value>) {
    let mut bytes = Vec::new();
    let (head, mut body) = loop {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).unwrap();
        bytes.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8(bytes.clone()).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            break (head.to_owned(), body.to_owned());
        }
    };
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap_or("0");
    let length: usize = length.parse().unwrap();
    while body.len() < length {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).unwrap();
        body.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
    }
    let has_header = |line: &str| head.lines().any(|header| header == line);
    assert!(
        has_header("Authorization: Bearer sesame") && head.lines().any(|line| line.starts_with("Host: ")),
        "{head}"
    );
    let respond = |mut stream: TcpStream, status: &str| {
        stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes()).unwrap();
    };
    match head.split(" HTTP").next().unwrap() {
        "GET /events" => {
            assert!(
                has_header("Accept: text/event-stream") && has_header("Cache-Control: no-cache"),
                "{head}"
            );
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            stream_tx.send(stream).unwrap();
        }
        "POST /messages" => {
            assert!(has_header("Content-Type: application/json"), "{head}");
            reply_tx.send(serde_json::from_str(&body).unwrap()).unwrap();
            respond(stream, "200 OK");
        }
        _ => respond(stream, "404 Not Found"),
    }
}

fn send_event(stream: &mut TcpStream, number: u32, kind: &str, rest: &str) {
    let event = format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.{kind}","event_id":"evt_{number}","session_id":"sess_1","timestamp":"2026-05-24T14:00:00.000Z","producer":{{"agent_id":"lone"}},{rest}}}"#
    );
    let block = format!("data: {event}\n\n");
    stream.write_all(format!("{:x}\r\n{block}\r\n", block.len()).as_bytes()).unwrap();
}

const QUESTION: &str = r#""urgency":"critical","action":"Send it.","consequence":"It is gone.","reply_token":"rpl_1","timeout_seconds":310,"default_decision":"reject""#;

#[test]
fn a_producer_without_a_hub_is_announced_and_answered() {
    let producer = FakeProducer::start();
    let mut person = ListenProcess::start_connected(&producer.address, &["--token", "sesame"]);
    let mut stream = producer.next_stream();
    person.read_until("notice: This agent runs without a hub");
    send_event(&mut stream, 1, "session.started", r#""summary_normal":"Begun.""#);
    person.read_until("session: lone has started. Begun.");
    send_event(&mut stream, 2, "awaiting.confirmation", QUESTION);
    person.read_until("ask: You have 5 minutes.");
    for command in ["stop", "more time"] {
        person.type_line(command);
        person.read_until("error: This agent has no hub");
    }
    person.type_line("yes");
    let reply = producer.replies.recv_timeout(Duration::from_mins(2)).unwrap();
    assert_eq!((&reply["reply_token"], &reply["decision"]), (&"rpl_1".into(), &"accept".into()));
    assert!(reply["subscription_id"].as_str().unwrap().starts_with("sub_"));
    send_event(&mut stream, 3, "state.changed", r#""from_state":"awaiting_input","to_state":"calling_tool""#);
    person.read_until("answer: Answer received.");
    let long = format!(r#""tool":"t","summary_normal":"{}""#, "x".repeat(3 * 1024 * 1024));
    send_event(&mut stream, 9, "tool.invoked", &long);
    person.read_until("error: A message was too long and was skipped.");
    // The producer disconnects. After the reconnect, an event that it repeats is not announced again.
    drop(stream);
    person.read_until("notice: Connection to the hub lost");
    let mut stream = producer.next_stream();
    person.read_until("notice: Reconnected, but what you missed was not stored.");
    send_event(&mut stream, 2, "awaiting.confirmation", QUESTION);
    send_event(&mut stream, 4, "session.completed", r#""summary_normal":"Done.""#);
    let lines = person.read_until("session: lone has finished. Done.");
    assert!(!lines.iter().any(|line| line.starts_with("ask: ")), "{lines:#?}");
}
