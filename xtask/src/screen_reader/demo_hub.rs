//! The hub that serves the page: the real binary, an agent that asks, and another person who listens.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use seal::json::{Tape, write_object};
use seal::{Timestamp, UnixMillis};

use super::desktop::Desktop;

/// How long to wait until the page has subscribed.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_mins(2);

/// The question that [`DemoHub::ask`] asks.
const QUESTION: &str = r#"{"action":"Send 5 euros to Ben.","consequence":"The money leaves the account at once.","risk_level":"high",
"irreversible":true,"timeout_seconds":1200,"default_decision":"reject","summary_normal":"May I send 5 euros?","tool":"send",
"arguments":{"amount":"5.00"}}"#;

pub(super) struct DemoHub {
    /// Host and port.
    pub(super) address: String,
    sayso: PathBuf,
    data: PathBuf,
    process: Child,
    /// The other listener, with its open event stream, once there is one.
    other_listener: Option<(String, TcpStream)>,
    reply_token: String,
}

impl DemoHub {
    pub(super) fn start(desktop: &Desktop, sayso: &Path) -> Result<Self, String> {
        // The hub keeps its port when it is started again.
        let reserved = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = reserved.map_err(|error| format!("no port is free: {error}"))?.to_string();
        let data = desktop.path("data");
        let process = start_process(desktop, sayso, &data, &address)?;
        let sayso = sayso.to_owned();
        Ok(Self { address, sayso, data, process, other_listener: None, reply_token: String::new() })
    }

    /// Sends a request to the demo agent.
    pub(super) fn request_demo(&self, request: &str) -> Result<(), String> {
        self.post("/demo", &format!(r#"{{"text":"{request}"}}"#)).map(drop)
    }

    /// Makes an agent ask a question. Another person listens, too, and can answer it.
    pub(super) fn ask(&mut self) -> Result<(), String> {
        if self.other_listener.is_none() {
            self.other_listener = Some(self.subscribe()?);
        }
        let start = r#"{"summary_normal":"Moving money.","localization_hints":{"primary_language":"en"}}"#;
        let session = member(&self.post("/agent/v1/sessions", start)?, "session_id")?;
        let question = self.post(&format!("/agent/v1/sessions/{session}/confirmations"), QUESTION)?;
        self.reply_token = member(&question, "reply_token")?;
        Ok(())
    }

    /// Accepts the latest question as another person.
    pub(super) fn accept(&self) -> Result<(), String> {
        let (subscription, _) = self.other_listener.as_ref().ok_or("nobody else listens")?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let now = Timestamp::from_unix_millis(UnixMillis::new(i64::try_from(now).unwrap_or_default()));
        let timestamp = now.ok_or("the clock is wrong")?.to_string();
        let reply = write_object(|writer| {
            writer.text_members([
                ("type", "confirmation.reply"),
                ("subscription_id", subscription),
                ("reply_token", &self.reply_token),
                ("decision", "accept"),
                ("timestamp", &timestamp),
            ]);
        });
        self.post("/aaep/v1/replies", &reply).map(drop)
    }

    pub(super) fn kill(&mut self) -> Result<(), String> {
        self.other_listener = None;
        let killed = self.process.kill().and_then(|()| self.process.wait());
        killed.map(drop).map_err(|error| format!("the hub could not be killed: {error}"))
    }

    /// Restarts the hub with the same data.
    pub(super) fn restart(&mut self, desktop: &Desktop) -> Result<(), String> {
        self.process = start_process(desktop, &self.sayso, &self.data, &self.address)?;
        Ok(())
    }

    /// Waits until the page has subscribed.
    pub(super) fn wait_for_listener(&self) -> Result<(), String> {
        let deadline = Instant::now() + SUBSCRIBE_TIMEOUT;
        while Instant::now() < deadline {
            if self.http("GET /metrics", "")?.contains("\nsayso_subscriptions_open 1\n") {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err("the page never subscribed".to_owned())
    }

    /// Subscribes as another person, and opens the event stream.
    fn subscribe(&self) -> Result<(String, TcpStream), String> {
        let request = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"other","capabilities":
            {"supports_confirmation_reply":true,"supported_conformance_levels":[1,2,3],"languages":["en"]}}"#;
        let id = member(&self.post("/aaep/v1/subscriptions", request)?, "subscription_id")?;
        let connect = || {
            let mut stream = TcpStream::connect(&self.address)?;
            write!(
                stream,
                "GET /aaep/v1/events?subscription_id={id} HTTP/1.1\r\nHost: {}\r\n\r\n",
                self.address
            )?;
            // The response starts once the hub delivers events to this listener.
            stream.read_exact(&mut [0])?;
            Ok(stream)
        };
        let stream = connect().map_err(|error: std::io::Error| format!("the event stream: {error}"))?;
        Ok((id, stream))
    }

    /// Sends a request and returns the body of the response.
    fn post(&self, path: &str, body: &str) -> Result<String, String> {
        let response = self.http(&format!("POST {path}"), body)?;
        let status = response.split(' ').nth(1).unwrap_or_default();
        match response.split_once("\r\n\r\n") {
            Some((_, body)) if status.starts_with('2') => Ok(body.to_owned()),
            _ => Err(format!("POST {path} failed: {response}")),
        }
    }

    fn http(&self, request_line: &str, body: &str) -> Result<String, String> {
        let Self { address, .. } = self;
        let exchange = || {
            let mut stream = TcpStream::connect(address)?;
            let length = body.len();
            write!(
                stream,
                "{request_line} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
            )?;
            write!(stream, "Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")?;
            let mut response = String::new();
            stream.read_to_string(&mut response)?;
            Ok(response)
        };
        exchange().map_err(|error: std::io::Error| format!("{request_line}: {error}"))
    }
}

impl Drop for DemoHub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn start_process(desktop: &Desktop, sayso: &Path, data: &Path, address: &str) -> Result<Child, String> {
    let mut serve = desktop.command(sayso);
    serve.args(["serve", "--open", "--demo-agent", "--hub-lease", "1h", "--hub-resume-window", "1h"]);
    serve.args(["--listen", address, "--data"]).arg(data).stderr(Stdio::piped());
    let mut process = serve.spawn().map_err(|error| format!("the hub could not be started: {error}"))?;
    let errors = process.stderr.take().ok_or("the hub has no log")?;
    let mut lines = BufReader::new(errors).lines();
    let is_ready = |line: String| line.starts_with("listening on http://");
    if !lines.by_ref().map_while(Result::ok).any(is_ready) {
        return Err("the hub did not start".to_owned());
    }
    // Drain the log, so that the hub never blocks on it.
    std::thread::spawn(move || lines.for_each(drop));
    Ok(process)
}

/// Returns a member of a JSON object.
fn member(json: &str, name: &str) -> Result<String, String> {
    let mut tape = Tape::default();
    let root = tape.read(json).map_err(|error| format!("{json}: {error}"))?.root();
    let text = root.member(name).and_then(|value| Some(value.text()?.into_owned()));
    text.ok_or_else(|| format!("no {name} in {json}"))
}
