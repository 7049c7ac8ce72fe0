//! Drives a real browser, Debian's headless Chromium, over its DevTools protocol.
//!
//! [`Browser::start`] starts the browser with an empty profile, and dropping the [`Browser`] ends it. [`Browser::open_page`]
//! opens a page in its own window. Pages of one browser share their cookies, except for those of
//! [`Browser::open_isolated_page`]. Page actions are in `open_page`, the screen reader's view in `accessibility_tree`,
//! and keyboard input in `keys`.

mod accessibility_tree;
mod base64;
mod devtools;
mod emulation;
mod keys;
mod open_page;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

pub use accessibility_tree::outline;
pub use devtools::BROWSER_TIMEOUT;
pub use emulation::MediaPreferences;
pub use open_page::Page;

use crate::cli::binary;
use devtools::DevToolsConnection;

/// The file in its profile into which Chromium writes its DevTools address.
const DEVTOOLS_PORT_FILE: &str = "DevToolsActivePort";

/// Chromium's flags. The sandbox is off, because it does not work for root in a container. Only loopback addresses can be
/// reached, and timers in background pages are not throttled.
const CHROMIUM_FLAGS: [&str; 21] = [
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
    connection: DevToolsConnection,
    address: String,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        #[allow(clippy::zombie_processes, reason = "dropping the browser waits for the process")]
        let mut child = Command::new("chromium")
            .args(CHROMIUM_FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("chromium: {error}; `cargo xtask browser` installs it"));
        let (address, path) = read_devtools_address(&mut child, &profile.path().join(DEVTOOLS_PORT_FILE));
        let connection = DevToolsConnection::connect(&address, &path);
        Self { child, connection, address, _profile: profile }
    }

    /// Opens a page in its own window.
    pub fn open_page(&mut self) -> Page {
        self.create_page(&json!({ "url": "about:blank", "newWindow": true }))
    }

    /// Opens a page that shares no cookies or storage with other pages.
    pub fn open_isolated_page(&mut self) -> Page {
        let context = self.connection.call("Target.createBrowserContext", &json!({}));
        let context = &context["browserContextId"];
        self.create_page(&json!({ "url": "about:blank", "newWindow": true, "browserContextId": context }))
    }

    fn create_page(&mut self, parameters: &serde_json::Value) -> Page {
        let target = self.connection.call("Target.createTarget", parameters);
        let id = target["targetId"].as_str().unwrap();
        Page::new(DevToolsConnection::connect(&self.address, &format!("/devtools/page/{id}")))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Asks the browser to close, so that it ends its own processes, and waits up to 5 seconds.
        self.connection.send_command("Browser.close", &json!({}));
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until Chromium has written both lines of its port file. Returns the DevTools address and path.
fn read_devtools_address(child: &mut Child, file: &std::path::Path) -> (String, String) {
    let deadline = Instant::now() + BROWSER_TIMEOUT;
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if let Some((port, path)) = text.split_once('\n')
            && path.starts_with('/')
        {
            return (format!("127.0.0.1:{port}"), path.trim_end().to_owned());
        }
        if let Ok(Some(status)) = child.try_wait() {
            panic!("chromium exited with {status} before it wrote its DevTools address");
        }
        assert!(Instant::now() < deadline, "chromium did not write its DevTools address");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the folder for screenshots, `target/browser`, and creates it if necessary.
pub fn screenshot_dir() -> PathBuf {
    let folder = binary().ancestors().nth(2).unwrap().join("browser");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
