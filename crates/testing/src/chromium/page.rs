//! A page: go to an address, ask it things, wait until something is so, take its picture.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::line::{Line, PATIENCE};
use super::{base64, pictures};

/// How long lies between two looks at a condition.
const LOOK: Duration = Duration::from_millis(25);

/// What the browser complained about, and in which matter: `javascript`, `security`, `network`, `console` …
#[derive(Clone, Debug)]
pub struct Complaint {
    pub about: String,
    pub text: String,
}

/// An open page. It stays when this is dropped, and goes with its browser.
pub struct Page {
    line: Line,
    complaints: Vec<Complaint>,
    arrived: bool,
    /// Its window: width, height, zoom in percent.
    pub(super) size: (u32, u32, u32),
}

impl Page {
    pub(super) fn of(line: Line) -> Self {
        let mut page = Self { line, complaints: Vec::new(), arrived: false, size: (1280, 800, 100) };
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            page.call(&format!("{domain}.enable"), &json!({}));
        }
        // Two windows cannot both have the keyboard; each page is to behave as if it had.
        page.call("Emulation.setFocusEmulationEnabled", &json!({ "enabled": true }));
        let (width, height, zoom) = page.size;
        page.window(width, height, zoom);
        page
    }

    /// Gives any command of the protocol.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        let result = self.line.call(method, parameters);
        self.listen(Duration::ZERO);
        result
    }

    /// Goes to an address, and waits until its document is there.
    pub fn go(&mut self, url: &str) {
        // What is asked of a page that is about to go may never be answered, so it is told when the next one is there.
        self.listen(Duration::ZERO);
        self.arrived = false;
        let went = self.call("Page.navigate", &json!({ "url": url }));
        assert!(went.get("errorText").is_none(), "{url}: {went}");
        self.arrive();
    }

    /// Loads the page again.
    pub fn reload(&mut self) {
        self.listen(Duration::ZERO);
        self.arrived = false;
        self.call("Page.reload", &json!({}));
        self.arrive();
    }

    fn arrive(&mut self) {
        let until = Instant::now() + PATIENCE;
        while !self.arrived {
            assert!(Instant::now() < until, "the page did not come: {:?}", self.complaints);
            self.listen(LOOK);
        }
    }

    /// The value of an expression in the page. A promise is waited for.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        self.try_evaluate(expression).unwrap_or_else(|why| panic!("{expression}: {why}"))
    }

    fn try_evaluate(&mut self, expression: &str) -> Result<Value, String> {
        let how = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true });
        let answer = self.line.try_call("Runtime.evaluate", &how)?;
        match answer.get("exceptionDetails") {
            Some(thrown) => Err(thrown["exception"]["description"].as_str().unwrap_or("thrown").to_owned()),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Waits until an expression is true of the page.
    pub fn wait(&mut self, condition: &str) {
        let until = Instant::now() + PATIENCE;
        let mut last = String::new();
        while Instant::now() < until {
            // While the page goes elsewhere there may be nothing to ask.
            match self.try_evaluate(condition) {
                Ok(Value::Bool(true)) => return,
                Ok(other) => last = other.to_string(),
                Err(why) => last = why,
            }
            self.listen(LOOK);
        }
        let text = self.try_evaluate("document.body?.innerText").unwrap_or_default();
        panic!(
            "not so in {PATIENCE:?}: {condition}\nlast: {last}\ncomplaints: {:?}\n{text:#}",
            self.complaints
        );
    }

    /// Waits until the page shows this text.
    pub fn shows(&mut self, text: &str) {
        self.wait(&format!("document.body.innerText.includes({})", json!(text)));
    }

    /// What can be read of the element that this selector finds; nothing if there is none.
    pub fn text(&mut self, selector: &str) -> Option<String> {
        let found = self.evaluate(&format!("document.querySelector({})?.innerText", json!(selector)));
        found.as_str().map(str::to_owned)
    }

    /// Presses the mouse in the middle of the element that this selector finds.
    pub fn click(&mut self, selector: &str) {
        let place = self.evaluate(&format!(
            "(() => {{ const found = document.querySelector({}); found.scrollIntoView({{ block: 'center' }});
                const box = found.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            json!(selector)
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Runs a script in the page, also where its policy forbids scripts of others.
    pub fn run(&mut self, script: &str) {
        let answer = self.call("Runtime.evaluate", &json!({ "expression": script }));
        assert!(answer.get("exceptionDetails").is_none(), "{answer:#}");
    }

    /// Runs a script in every document that comes, before its own.
    pub fn before(&mut self, script: &str) {
        self.call("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": script }));
    }

    /// A place beside the page's own scripts, which sees the same document: what runs there neither disturbs the page nor is
    /// bound by its policy.
    pub fn aside(&mut self, script: &str, expression: &str) -> Value {
        let tree = self.call("Page.getFrameTree", &json!({}));
        let how = json!({ "frameId": tree["frameTree"]["frame"]["id"], "worldName": "aside", "grantUniveralAccess": true });
        let world = self.call("Page.createIsolatedWorld", &how);
        let context = &world["executionContextId"];
        let load = json!({ "expression": script, "contextId": context });
        self.call("Runtime.evaluate", &load);
        let ask = json!({ "expression": expression, "contextId": context, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", &ask);
        assert!(answer.get("exceptionDetails").is_none(), "{answer:#}");
        answer["result"]["value"].clone()
    }

    /// From now on this page is given that for addresses that begin so, whatever is there. All else it gets from where it is.
    pub fn serve(&mut self, url: &str, kind: &str, body: &[u8]) {
        self.line.serve(url, served(kind, body), true);
    }

    /// As [`Self::serve`], for the next request only.
    pub fn serve_once(&mut self, url: &str, kind: &str, body: &[u8]) {
        self.line.serve(url, served(kind, body), false);
    }

    /// Takes a picture of the whole page, and returns where it is.
    pub fn picture(&mut self, name: &str) -> PathBuf {
        // What is out of sight may not be drawn, so the window is made as high as the page for a moment.
        let (width, height, zoom) = self.size;
        let whole = self.evaluate("Math.min(document.documentElement.scrollHeight, 4000)").as_u64().unwrap();
        self.window(width, height.max(u32::try_from(whole).unwrap() * zoom / 100), zoom);
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
        let picture = self.call("Page.captureScreenshot", &json!({ "format": "png" }));
        self.window(width, height, zoom);
        let file = pictures().join(format!("{name}.png"));
        std::fs::write(&file, base64::decode(picture["data"].as_str().unwrap())).unwrap();
        file
    }

    /// Closes its window, as a person would.
    pub fn close(mut self) {
        self.line.call("Page.close", &json!({}));
    }

    /// What the browser complained about since this was last asked.
    pub fn complaints(&mut self) -> Vec<Complaint> {
        // What the page has done so far is told before this is answered.
        self.evaluate("0");
        self.listen(Duration::ZERO);
        std::mem::take(&mut self.complaints)
    }

    /// Hears what happens, for that long.
    fn listen(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while let Some(event) = self.line.event(until.saturating_duration_since(Instant::now())) {
            self.hear(&event);
        }
    }

    fn hear(&mut self, event: &Value) {
        let told = &event["params"];
        match event["method"].as_str() {
            Some("Page.loadEventFired") => self.arrived = true,
            Some("Runtime.exceptionThrown") => {
                let thrown = &told["exceptionDetails"];
                let text = thrown["exception"]["description"].as_str().or(thrown["text"].as_str());
                self.complain("javascript", text.unwrap_or_default());
            }
            Some("Runtime.consoleAPICalled")
                if ["error", "warning", "assert"].contains(&told["type"].as_str().unwrap_or_default()) =>
            {
                self.complain("console", &told["args"].to_string());
            }
            Some("Log.entryAdded") if told["entry"]["level"] == "error" => {
                let entry = &told["entry"];
                let (text, url) =
                    (entry["text"].as_str().unwrap_or_default(), entry["url"].as_str().unwrap_or_default());
                // The browser asks for a picture that nobody promised.
                if !url.ends_with("/favicon.ico") {
                    self.complain(entry["source"].as_str().unwrap_or_default(), &format!("{text} {url}"));
                }
            }
            _ => {}
        }
    }

    fn complain(&mut self, about: &str, text: &str) {
        self.complaints.push(Complaint { about: about.to_owned(), text: text.to_owned() });
    }
}

fn served(kind: &str, body: &[u8]) -> Value {
    json!({
        "responseCode": 200,
        "responseHeaders": [
            { "name": "Content-Type", "value": kind },
            { "name": "Content-Security-Policy", "value": "default-src 'self'" },
        ],
        "body": base64::encode(body),
    })
}
