//! The hub that serves the page: the real binary.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::desktop::Desktop;

/// How long to wait until the page has subscribed.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_mins(2);

pub(super) struct DemoHub {
    /// Host and port.
    pub(super) address: String,
}

impl DemoHub {
    /// Starts the hub as a program of the desktop, so that it ends with the desktop.
    pub(super) fn start(desktop: &Desktop, sayso: &Path) -> Result<Self, String> {
        let mut serve = desktop.command(sayso);
        serve.args(["serve", "--memory", "--open", "--demo-agent", "--listen", "127.0.0.1:0"]);
        let mut lines = BufReader::new(desktop.start(serve.stderr(Stdio::piped()))?).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("listening on http://").map(str::to_owned))
            .ok_or("the hub did not start")?;
        // Drain the log, so that the hub never blocks on it.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { address })
    }

    /// Sends a request to the demo agent.
    pub(super) fn request_demo(&self, request: &str) -> Result<(), String> {
        let body = format!(r#"{{"text":"{request}"}}"#);
        let response = self.http("POST /demo", &body)?;
        let status = response.split(' ').nth(1).unwrap_or_default();
        if status.starts_with('2') { Ok(()) } else { Err(format!("the demo request failed: {response}")) }
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

    fn http(&self, request_line: &str, body: &str) -> Result<String, String> {
        let Self { address } = self;
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
