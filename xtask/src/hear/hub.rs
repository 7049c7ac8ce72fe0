//! The hub whose page is listened to: the real binary.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::desktop::Desktop;

/// So long is waited for the page to subscribe.
const PATIENCE: Duration = Duration::from_mins(2);

pub(super) struct Hub {
    /// Host and port.
    pub(super) address: String,
}

impl Hub {
    /// Starts it as a part of the desktop, so that it ends with it.
    pub(super) fn start(desktop: &Desktop, sayso: &Path) -> Result<Self, String> {
        let mut serve = desktop.command(sayso);
        serve.args(["serve", "--memory", "--open", "--demo-agent", "--listen", "127.0.0.1:0"]);
        let mut lines = BufReader::new(desktop.start(serve.stderr(Stdio::piped()))?).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("listening on http://").map(str::to_owned))
            .ok_or("the hub did not start")?;
        // It must not wait for somebody who reads its log.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { address })
    }

    /// Asks the demonstration assistant for something.
    pub(super) fn ask(&self, request: &str) -> Result<(), String> {
        let body = format!(r#"{{"text":"{request}"}}"#);
        let answer = self.http("POST /demo", &body)?;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        if status.starts_with('2') { Ok(()) } else { Err(format!("the assistant cannot be asked: {answer}")) }
    }

    /// Waits until the page listens.
    pub(super) fn wait_for_listener(&self) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if self.http("GET /metrics", "")?.contains("\nsayso_subscriptions_open 1\n") {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err("the page never subscribed".to_owned())
    }

    fn http(&self, what: &str, body: &str) -> Result<String, String> {
        let Self { address } = self;
        let exchange = || {
            let mut stream = TcpStream::connect(address)?;
            let length = body.len();
            write!(stream, "{what} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n")?;
            write!(stream, "Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        exchange().map_err(|error: std::io::Error| format!("{what}: {error}"))
    }
}
