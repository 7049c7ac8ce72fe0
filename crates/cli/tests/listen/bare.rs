//! A producer without a hub: no handshake, unnamed messages in chunks, answers to `/messages`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::Value;

use testing::terminal::Person;

/// Speaks as AAEP's own packages do.
struct Producer {
    address: String,
    streams: Receiver<TcpStream>,
    answers: Receiver<Value>,
}

impl Producer {
    fn starts() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let ((open, streams), (answer, answers)) = (channel(), channel());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                serve(stream, &open, &answer);
            }
        });
        Self { address, streams, answers }
    }

    fn stream(&self) -> TcpStream {
        self.streams.recv_timeout(Duration::from_mins(2)).unwrap()
    }
}

fn serve(mut stream: TcpStream, open: &Sender<TcpStream>, answer: &Sender<Value>) {
    let mut bytes = Vec::new();
    let (head, mut body) = loop {
        let mut more = [0; 4096];
        let read = stream.read(&mut more).unwrap();
        bytes.extend_from_slice(&more[..read]);
        let text = String::from_utf8(bytes.clone()).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            break (head.to_owned(), body.to_owned());
        }
    };
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap_or("0");
    let length: usize = length.parse().unwrap();
    while body.len() < length {
        let mut more = [0; 4096];
        let read = stream.read(&mut more).unwrap();
        body.push_str(std::str::from_utf8(&more[..read]).unwrap());
    }
    let has = |line: &str| head.lines().any(|own| own == line);
    assert!(
        has("Authorization: Bearer sesame") && head.lines().any(|line| line.starts_with("Host: ")),
        "{head}"
    );
    let answer_with = |mut stream: TcpStream, status: &str| {
        stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes()).unwrap();
    };
    match head.split(" HTTP").next().unwrap() {
        "GET /events" => {
            assert!(has("Accept: text/event-stream") && has("Cache-Control: no-cache"), "{head}");
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            open.send(stream).unwrap();
        }
        "POST /messages" => {
            assert!(has("Content-Type: application/json"), "{head}");
            answer.send(serde_json::from_str(&body).unwrap()).unwrap();
            answer_with(stream, "200 OK");
        }
        _ => answer_with(stream, "404 Not Found"),
    }
}

fn tell(stream: &mut TcpStream, number: u32, kind: &str, rest: &str) {
    let event = format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.{kind}","event_id":"evt_{number}","session_id":"sess_1","timestamp":"2026-05-24T14:00:00.000Z","producer":{{"agent_id":"lone"}},{rest}}}"#
    );
    let block = format!("data: {event}\n\n");
    stream.write_all(format!("{:x}\r\n{block}\r\n", block.len()).as_bytes()).unwrap();
}

const QUESTION: &str = r#""urgency":"critical","action":"Send it.","consequence":"It is gone.","reply_token":"rpl_1","timeout_seconds":330,"default_decision":"reject""#;

#[test]
fn a_lone_producer_is_heard_and_answered_without_a_handshake() {
    let producer = Producer::starts();
    let mut person = Person::is_there(&producer.address, &["--token", "sesame"]);
    let mut stream = producer.stream();
    person.hears("notice: This is an agent by itself, without a hub");
    tell(&mut stream, 1, "session.started", r#""summary_normal":"Begun.""#);
    person.hears("session: lone has begun. Begun.");
    tell(&mut stream, 2, "awaiting.confirmation", QUESTION);
    person.hears("ask: You have 5 minutes.");
    for command in ["stop", "more time"] {
        person.types(command);
        person.hears("error: This agent has no hub");
    }
    person.types("yes");
    let answer = producer.answers.recv_timeout(Duration::from_mins(2)).unwrap();
    assert_eq!((&answer["reply_token"], &answer["decision"]), (&"rpl_1".into(), &"accept".into()));
    assert!(answer["subscription_id"].as_str().unwrap().starts_with("sub_"));
    tell(&mut stream, 3, "state.changed", r#""from_state":"awaiting_input","to_state":"calling_tool""#);
    person.hears("answer: Your answer to question 1 was taken.");
    let long = format!(r#""tool":"t","summary_normal":"{}""#, "x".repeat(3 * 1024 * 1024));
    tell(&mut stream, 9, "tool.invoked", &long);
    person.hears("error: Something came that is longer than can be taken; it was left out.");
    // It hangs up, and is connected to again; what it says again is not said again.
    drop(stream);
    person.hears("notice: The connection to the hub is lost");
    let mut stream = producer.stream();
    person.hears("notice: Connected again, but what was said meanwhile was not kept for you.");
    tell(&mut stream, 2, "awaiting.confirmation", QUESTION);
    tell(&mut stream, 4, "session.completed", r#""summary_normal":"Done.""#);
    let heard = person.hears("session: lone is done. Done.");
    assert!(!heard.iter().any(|line| line.starts_with("ask: ")), "{heard:#?}");
}
