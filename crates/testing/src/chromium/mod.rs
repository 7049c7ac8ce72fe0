//! A real browser, Debian's Chromium without a window, driven over its own DevTools protocol.
//!
//! [`Browser::start`] begins with an empty profile and ends with the value. [`Browser::page`] opens a page with a window of its
//! own; pages of one browser share their cookies, [`Browser::stranger`] has its own. What a page can do is in `page`, what can
//! be seen of it as a screen reader would in `tree`, keys in `keys`.

mod base64;
mod keys;
mod line;
mod media;
mod page;
mod tree;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

pub use line::PATIENCE;
pub use media::Look;
pub use page::Page;
pub use tree::outline;

use crate::cli::binary;
use line::Line;

/// Where it knocks for commands, written by it into its profile.
const DOOR: &str = "DevToolsActivePort";

/// What it is told at its start. It runs as root in containers, where its own sandbox cannot; it may reach nothing but
/// loopback; and pages behind others keep their clocks.
const FLAGS: [&str; 21] = [
    "--headless",
    "--no-sandbox",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-renderer-backgrounding",
    "--disable-sync",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--lang=en-US",
    "--password-store=basic",
];

/// A browser that runs until it is dropped.
pub struct Browser {
    child: Child,
    line: Line,
    address: String,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        #[allow(clippy::zombie_processes, reason = "it is waited for when the browser is dropped")]
        let mut child = Command::new("chromium")
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("chromium: {error}; `cargo xtask browser` installs it"));
        let (address, path) = door(&mut child, &profile.path().join(DOOR));
        let line = Line::to(&address, &path);
        Self { child, line, address, _profile: profile }
    }

    /// A page in a window of its own.
    pub fn page(&mut self) -> Page {
        self.open(&json!({ "url": "about:blank", "newWindow": true }))
    }

    /// A page of somebody who shares nothing with the others.
    pub fn stranger(&mut self) -> Page {
        let context = self.line.call("Target.createBrowserContext", &json!({}));
        let context = &context["browserContextId"];
        self.open(&json!({ "url": "about:blank", "newWindow": true, "browserContextId": context }))
    }

    fn open(&mut self, how: &serde_json::Value) -> Page {
        let target = self.line.call("Target.createTarget", how);
        let id = target["targetId"].as_str().unwrap();
        Page::of(Line::to(&self.address, &format!("/devtools/page/{id}")))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Asked to, it takes its own processes with it; it is given a moment.
        self.line.tell("Browser.close", &json!({}));
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where its commands go: an address and a path, as soon as both lines are there.
fn door(child: &mut Child, file: &std::path::Path) -> (String, String) {
    let until = Instant::now() + PATIENCE;
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if let Some((port, path)) = text.split_once('\n')
            && path.starts_with('/')
        {
            return (format!("127.0.0.1:{port}"), path.trim_end().to_owned());
        }
        if let Ok(Some(status)) = child.try_wait() {
            panic!("chromium ended with {status} before it could be spoken to");
        }
        assert!(Instant::now() < until, "chromium does not say where it can be spoken to");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Where pictures go, for a person to look at: `target/browser`.
pub fn pictures() -> PathBuf {
    let folder = binary().ancestors().nth(2).unwrap().join("browser");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
