//! The real binary as a hub, and a client that speaks plain HTTP to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Nothing takes longer that comes at all, however slow the machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// How a hub ended that did not start: its exit code, and what it said.
pub(crate) type Ended = (Option<i32>, Vec<String>);

/// An address on which nobody listens, and nobody else will: its port is none of those that the system hands out to whoever
/// asks for any. So a hub can be started there, and started there again.
pub(crate) fn address_of_its_own() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(std::process::id() % 100).unwrap() * 120;
    loop {
        let port = 20_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000;
        if let Ok(free) = std::net::TcpListener::bind(("127.0.0.1", port)) {
            return free.local_addr().unwrap().to_string();
        }
    }
}

/// A hub that runs until it is dropped.
pub(crate) struct Hub {
    child: Child,
    pub(crate) address: String,
    /// What it said before it listened.
    pub(crate) said: Vec<String>,
    later: Receiver<String>,
}

impl Hub {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_as(Command::new(env!("CARGO_BIN_EXE_sayso")).arg("serve").args(arguments))
    }

    /// Starts it by a command that becomes it.
    pub(crate) fn start_as(command: &mut Command) -> Self {
        Self::run(command).unwrap_or_else(|(code, said)| panic!("it ended with {code:?}: {said:?}"))
    }

    /// Runs a command that becomes a hub, or ends.
    pub(crate) fn run(command: &mut Command) -> Result<Self, Ended> {
        #[allow(clippy::zombie_processes, reason = "it is waited for when the hub is dropped")]
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        loop {
            let Some(line) = lines.next() else { return Err((child.wait().unwrap().code(), said)) };
            let line = line.unwrap();
            let plain = line.strip_prefix("listening on http://");
            if let Some(address) = plain.or_else(|| line.strip_prefix("listening on https://")) {
                let address = address.to_owned();
                // What it says later must not block it.
                let (tell, later) = channel();
                std::thread::spawn(move || {
                    for line in lines.map_while(Result::ok) {
                        let _ = tell.send(line);
                    }
                });
                return Ok(Self { child, address, said, later });
            }
            said.push(line);
        }
    }

    pub(crate) fn open() -> Self {
        Self::start(&["--memory", "--open", "--listen", "127.0.0.1:0"])
    }

    /// In memory, with these limits.
    pub(crate) fn limited(limits: &[&str]) -> Self {
        Self::start(&[&["--memory", "--open", "--listen", "127.0.0.1:0"], limits].concat())
    }

    pub(crate) fn on_disk(folder: &Path) -> Self {
        Self::start(&["--open", "--listen", "127.0.0.1:0", "--data", folder.to_str().unwrap()])
    }

    pub(crate) fn client(&self) -> Client {
        Client::of(&self.address)
    }

    /// Its process.
    pub(crate) fn id(&self) -> String {
        self.child.id().to_string()
    }

    /// The next line of its log that has this in it.
    pub(crate) fn logs(&self, part: &str) -> String {
        loop {
            let line = self.later.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {part} in the log"));
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Asks it to stop, and returns what is left of its log.
    pub(crate) fn last_words(mut self) -> Vec<String> {
        assert_eq!(self.stop(), 0);
        self.later.iter().collect()
    }

    /// Its id.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Kills it without a word.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop, and returns its exit code.
    pub(crate) fn stop(&mut self) -> i32 {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The text of a member of the JSON body.
    pub(crate) fn text(&self, name: &str) -> String {
        let value: serde_json::Value =
            serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"));
        value[name].as_str().unwrap_or_else(|| panic!("no {name} in {self:?}")).to_owned()
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    address: String,
    headers: String,
}

impl Client {
    pub(crate) fn of(address: &str) -> Self {
        Self { address: address.to_owned(), headers: String::new() }
    }

    pub(crate) fn with(&self, header: &str) -> Self {
        Self { address: self.address.clone(), headers: format!("{}{header}\r\n", self.headers) }
    }

    pub(crate) fn bearer(&self, token: &str) -> Self {
        self.with(&format!("Authorization: Bearer {token}"))
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends these bytes as they are, and reads until the other side closes.
    pub(crate) fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> Answer {
        self.try_send(method, path, body).unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }

    /// As [`Self::send`], of a hub that may be gone.
    pub(crate) fn try_send(&self, method: &str, path: &str, body: &str) -> Option<Answer> {
        let host = if self.headers.contains("Host:") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.address)
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}{}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.headers,
            body.len()
        );
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // One that is refused before it was read to its end cannot always be written to its end.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
        // An answer that was cut off is no answer.
        (length.unwrap_or(0) == body.len()).then(|| Answer {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, body)
    }

    pub(crate) fn subscribe(&self, capabilities: &str) -> String {
        let request = crate::messages::request(capabilities);
        let answer = self.post("/aaep/v1/subscriptions", &request);
        assert_eq!(answer.status, 201, "{answer:?}");
        let id = answer.text("subscription_id");
        assert!(answer.head.contains(&format!("Location: /aaep/v1/events?subscription_id={id}")));
        id
    }

    pub(crate) fn listen(&self, subscription: &str, last: Option<&str>) -> Ear {
        let last = last.map(|id| format!("Last-Event-ID: {id}")).unwrap_or_default();
        let client = if last.is_empty() { self.clone() } else { self.with(&last) };
        client.stream(&format!("/aaep/v1/events?subscription_id={subscription}"))
    }

    /// The stream at an address, after its head.
    pub(crate) fn stream(&self, path: &str) -> Ear {
        let mut stream = self.connect();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\n{}Accept: text/event-stream\r\n\r\n",
            self.address, self.headers
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut ear = Ear { lines: BufReader::new(stream) };
        let mut head = String::new();
        loop {
            let line = ear.line();
            if line.is_empty() {
                assert!(head.starts_with("HTTP/1.1 200"), "{head}");
                return ear;
            }
            head += &line;
        }
    }

    pub(crate) fn start(&self) -> String {
        let started = r#"{"summary_normal":"Moving money.","localization_hints":{"primary_language":"en"}}"#;
        let answer = self.post("/agent/v1/sessions", started);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.text("session_id")
    }

    pub(crate) fn ask(&self, session: &str) -> String {
        let answer = self.post(&format!("/agent/v1/sessions/{session}/confirmations"), QUESTION);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.text("reply_token")
    }

    pub(crate) fn reply(&self, subscription: &str, token: &str, decision: &str) -> Answer {
        self.try_reply(subscription, token, decision).expect("an answer")
    }

    pub(crate) fn try_reply(&self, subscription: &str, token: &str, decision: &str) -> Option<Answer> {
        let reply = crate::messages::reply(subscription, token, decision);
        self.try_send("POST", "/aaep/v1/replies", &reply)
    }
}

/// Its time is said as 2 minutes, also some seconds later on a slow machine, and twice as much as 4.
pub(crate) const QUESTION: &str = r#"{"action":"Send 5 euro to Ben.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high","timeout_seconds":134,"default_decision":"reject","summary_normal":"May I send 5 euro to Ben?","tool":"send","arguments":{"amount":"5.00"}}"#;
pub(crate) const CAN_REPLY: &str =
    r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true}"#;

/// Somebody who listens.
pub(crate) struct Ear {
    lines: BufReader<TcpStream>,
}

impl Ear {
    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "the stream has ended");
        line.trim_end_matches(['\r', '\n']).to_owned()
    }

    /// The next event: its type without its beginning, its id, and its JSON.
    pub(crate) fn next(&mut self) -> (String, String, serde_json::Value) {
        let mut id = String::new();
        loop {
            let line = self.line();
            if let Some(found) = line.strip_prefix("id: ") {
                found.clone_into(&mut id);
            } else if let Some(data) = line.strip_prefix("data: ") {
                let event: serde_json::Value = serde_json::from_str(data).unwrap();
                let kind = event["type"].as_str().unwrap().replace("aaep:agent.", "");
                return (kind, id, event);
            }
        }
    }

    pub(crate) fn next_type(&mut self) -> String {
        self.next().0
    }

    /// From now on nothing is waited for longer than that.
    pub(crate) fn wait_at_most(&self, time: Duration) {
        self.lines.get_ref().set_read_timeout(Some(time)).unwrap();
    }

    /// The next line, as it is.
    pub(crate) fn next_line(&mut self) -> String {
        self.line()
    }

    /// Whether the other side has ended the stream.
    pub(crate) fn is_over(&mut self) -> bool {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).is_ok()
    }
}
