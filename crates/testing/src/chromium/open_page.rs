//! An open page: navigation, scripts, conditions, input and screenshots.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::devtools::{BROWSER_TIMEOUT, DevToolsConnection};
use super::{base64, screenshot_dir};

/// Interval between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// An error that the browser reported, and its source: `javascript`, `security`, `network`, `console` …
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserError {
    pub source: String,
    pub text: String,
}

/// An open page. Dropping a `Page` does not close the page in the browser. The page closes with the browser.
pub struct Page {
    connection: DevToolsConnection,
    errors: Vec<BrowserError>,
    is_loaded: bool,
    /// The width and height of the window, and the zoom in percent.
    pub(super) size: (u32, u32, u32),
}

impl Page {
    pub(super) fn new(connection: DevToolsConnection) -> Self {
        let mut page = Self { connection, errors: Vec::new(), is_loaded: false, size: (1280, 800, 100) };
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            page.call(&format!("{domain}.enable"), &json!({}));
        }
        // Two windows cannot both have the keyboard focus, so each page emulates it.
        page.call("Emulation.setFocusEmulationEnabled", &json!({ "enabled": true }));
        let (width, height, zoom) = page.size;
        page.set_window(width, height, zoom);
        page
    }

    /// Sends any command of the DevTools protocol and returns its result.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        let result = self.connection.call(method, parameters);
        self.process_events(Duration::ZERO);
        result
    }

    /// Opens a URL and waits until the document is loaded.
    pub fn navigate(&mut self, url: &str) {
        // Waits for the load event and not for a script, because a page that is about to unload may never run the script.
        self.process_events(Duration::ZERO);
        self.is_loaded = false;
        let result = self.call("Page.navigate", &json!({ "url": url }));
        assert!(result.get("errorText").is_none(), "{url}: {result}");
        self.wait_for_load();
    }

    /// Reloads the page.
    pub fn reload(&mut self) {
        self.process_events(Duration::ZERO);
        self.is_loaded = false;
        self.call("Page.reload", &json!({}));
        self.wait_for_load();
    }

    fn wait_for_load(&mut self) {
        let deadline = Instant::now() + BROWSER_TIMEOUT;
        while !self.is_loaded {
            assert!(Instant::now() < deadline, "the page did not load: {:?}", self.errors);
            self.process_events(POLL_INTERVAL);
        }
    }

    /// Evaluates an expression in the page. A promise is awaited.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        self.try_evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    fn try_evaluate(&mut self, expression: &str) -> Result<Value, String> {
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true });
        let response = self.connection.try_call("Runtime.evaluate", &parameters)?;
        match response.get("exceptionDetails") {
            Some(thrown) => Err(thrown["exception"]["description"].as_str().unwrap_or("thrown").to_owned()),
            None => Ok(response["result"]["value"].clone()),
        }
    }

    /// Waits until an expression is true in the page.
    pub fn wait_until(&mut self, condition: &str) {
        let deadline = Instant::now() + BROWSER_TIMEOUT;
        let mut last = String::new();
        while Instant::now() < deadline {
            // The evaluation may fail during a navigation.
            match self.try_evaluate(condition) {
                Ok(Value::Bool(true)) => return,
                Ok(other) => last = other.to_string(),
                Err(error) => last = error,
            }
            self.process_events(POLL_INTERVAL);
        }
        let text = self.try_evaluate("document.body?.innerText").unwrap_or_default();
        panic!(
            "not true within {BROWSER_TIMEOUT:?}: {condition}\nlast: {last}\nerrors: {:?}\n{text:#}",
            self.errors
        );
    }

    /// Waits until the page shows this text.
    pub fn wait_for_text(&mut self, text: &str) {
        self.wait_until(&format!("document.body.innerText.includes({})", json!(text)));
    }

    /// Returns the visible text of the first element that matches a selector, or `None`.
    pub fn text(&mut self, selector: &str) -> Option<String> {
        let text = self.evaluate(&format!("document.querySelector({})?.innerText", json!(selector)));
        text.as_str().map(str::to_owned)
    }

    /// Clicks the middle of the first element that matches a selector.
    pub fn click(&mut self, selector: &str) {
        let center = self.evaluate(&format!(
            "(() => {{ const element = document.querySelector({}); element.scrollIntoView({{ block: 'center' }});
                const box = element.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            json!(selector)
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({ "type": kind, "x": center[0], "y": center[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Runs a script in the page, even if the page's content security policy forbids injected scripts.
    pub fn run_script(&mut self, script: &str) {
        let response = self.call("Runtime.evaluate", &json!({ "expression": script }));
        assert!(response.get("exceptionDetails").is_none(), "{response:#}");
    }

    /// Runs a script in every new document, before the document's own scripts.
    pub fn run_on_new_document(&mut self, script: &str) {
        self.call("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": script }));
    }

    /// Runs a script in an isolated world and then evaluates an expression there. Both see the page's document, but do not
    /// affect the page's scripts and are not restricted by its content security policy.
    pub fn evaluate_isolated(&mut self, script: &str, expression: &str) -> Value {
        let tree = self.call("Page.getFrameTree", &json!({}));
        // The protocol misspells `grantUniveralAccess`.
        let parameters = json!({ "frameId": tree["frameTree"]["frame"]["id"], "worldName": "isolated", "grantUniveralAccess": true });
        let world = self.call("Page.createIsolatedWorld", &parameters);
        let context = &world["executionContextId"];
        let load = json!({ "expression": script, "contextId": context });
        self.call("Runtime.evaluate", &load);
        let evaluation = json!({ "expression": expression, "contextId": context, "awaitPromise": true, "returnByValue": true });
        let response = self.call("Runtime.evaluate", &evaluation);
        assert!(response.get("exceptionDetails").is_none(), "{response:#}");
        response["result"]["value"].clone()
    }

    /// Answers requests of this page with a fixed body if their URL starts with `url_prefix`. Other requests go to the
    /// network.
    pub fn mock_url(&mut self, url_prefix: &str, media_type: &str, body: &[u8]) {
        self.connection.mock_response(url_prefix, mock_response_json(media_type, body), true);
    }

    /// Like [`Self::mock_url`], but answers only the next such request.
    pub fn mock_url_once(&mut self, url_prefix: &str, media_type: &str, body: &[u8]) {
        self.connection.mock_response(url_prefix, mock_response_json(media_type, body), false);
    }

    /// Takes a screenshot of the whole page. Returns the path of the image.
    pub fn screenshot(&mut self, name: &str) -> PathBuf {
        // Content outside the window may not be drawn, so the window is temporarily as high as the page.
        let (width, height, zoom) = self.size;
        let page_height =
            self.evaluate("Math.min(document.documentElement.scrollHeight, 4000)").as_u64().unwrap();
        self.set_window(width, height.max(u32::try_from(page_height).unwrap() * zoom / 100), zoom);
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
        let screenshot = self.call("Page.captureScreenshot", &json!({ "format": "png" }));
        self.set_window(width, height, zoom);
        let file = screenshot_dir().join(format!("{name}.png"));
        std::fs::write(&file, base64::decode(screenshot["data"].as_str().unwrap())).unwrap();
        file
    }

    /// Closes the window, as a person would.
    pub fn close(mut self) {
        self.connection.call("Page.close", &json!({}));
    }

    /// Returns the errors that the browser reported since the last call.
    pub fn take_errors(&mut self) -> Vec<BrowserError> {
        // All earlier events of the page arrive before the result of this evaluation.
        self.evaluate("0");
        self.process_events(Duration::ZERO);
        std::mem::take(&mut self.errors)
    }

    /// Processes the events that arrive within this time.
    fn process_events(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while let Some(event) = self.connection.next_event(deadline.saturating_duration_since(Instant::now()))
        {
            self.process_event(&event);
        }
    }

    fn process_event(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Page.loadEventFired") => self.is_loaded = true,
            Some("Runtime.exceptionThrown") => {
                let thrown = &params["exceptionDetails"];
                let text = thrown["exception"]["description"].as_str().or(thrown["text"].as_str());
                self.record_error("javascript", text.unwrap_or_default());
            }
            Some("Runtime.consoleAPICalled")
                if ["error", "warning", "assert"].contains(&params["type"].as_str().unwrap_or_default()) =>
            {
                self.record_error("console", &params["args"].to_string());
            }
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                let entry = &params["entry"];
                let (text, url) =
                    (entry["text"].as_str().unwrap_or_default(), entry["url"].as_str().unwrap_or_default());
                // The browser requests this icon by itself, although no page refers to it.
                if !url.ends_with("/favicon.ico") {
                    self.record_error(entry["source"].as_str().unwrap_or_default(), &format!("{text} {url}"));
                }
            }
            _ => {}
        }
    }

    fn record_error(&mut self, source: &str, text: &str) {
        self.errors.push(BrowserError { source: source.to_owned(), text: text.to_owned() });
    }
}

fn mock_response_json(media_type: &str, body: &[u8]) -> Value {
    json!({
        "responseCode": 200,
        "responseHeaders": [
            { "name": "Content-Type", "value": media_type },
            { "name": "Content-Security-Policy", "value": "default-src 'self'" },
        ],
        "body": base64::encode(body),
    })
}
