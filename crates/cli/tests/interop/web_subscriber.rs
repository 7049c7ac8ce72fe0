//! `@aaep/web-subscriber-react` in a real browser: it shows a session, and its buttons reply.
//!
//! The test driver serves the page at the hub's origin, because the hub accepts no other origin. The hub itself does
//! not serve this page.

use serde_json::Value;

use crate::start_compat_hub;
use testing::chromium::{Browser, Page};
use testing::http::EventStream;
use testing::hub::HubProcess;
use testing::messages::short_type;

const DOCUMENT: &str = r#"<!doctype html><html lang="en"><meta charset="utf-8"><title>AAEP's own subscriber</title>
<div id="root"></div><script src="/web_subscriber.js"></script></html>"#;
const DIALOG: &str = "[role=dialog]";

/// Opens the subscriber's page and waits until it is connected.
fn open_subscriber_page(hub: &HubProcess, browser: &mut Browser) -> Page {
    let script =
        std::env::var("INTEROP_SCRIPT").expect("INTEROP_SCRIPT is not set: run `cargo xtask interop`");
    let url = |path: &str| format!("http://{}{path}", hub.address);
    let mut page = browser.open_page();
    page.mock_url(&url("/web_subscriber"), "text/html", DOCUMENT.as_bytes());
    page.mock_url(&url("/web_subscriber.js"), "text/javascript", &std::fs::read(script).unwrap());
    page.navigate(&url("/web_subscriber"));
    page.wait_until("window.connection == 'connected'");
    page
}

/// Opens an event stream that cannot reply.
fn open_observer(hub: &HubProcess) -> EventStream {
    let client = hub.client();
    client.open_event_stream(&client.subscribe("{}"), None)
}

fn request_demo(hub: &HubProcess, text: &str) {
    let body = serde_json::json!({ "user_message": text }).to_string();
    assert_eq!(hub.client().post("/sessions", &body).status, 201);
}

/// Returns all events of one session that the observer received, up to the end.
fn read_session_events(observer: &mut EventStream) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let (name, _, event) = observer.next();
        events.push(event);
        if name == "session.completed" {
            return events;
        }
    }
}

/// Returns how the hub resolved the questions, and whether the agent acted.
fn resolution_and_action(events: &[Value]) -> (Vec<(&str, &str)>, bool) {
    let resolutions = events.iter().filter_map(|event| {
        let resolution = &event["extensions"]["sayso"];
        Some((resolution["decision"].as_str()?, resolution["by"].as_str()?))
    });
    (resolutions.collect(), events.iter().any(|event| short_type(event) == "tool.invoked"))
}

fn wait_for_dialog(page: &mut Page) -> String {
    page.wait_until(&format!("document.querySelector('{DIALOG}') != null"));
    page.text(DIALOG).unwrap()
}

#[test]
#[ignore = "needs what `cargo xtask interop` installs"]
fn web_subscriber_shows_a_question_and_its_buttons_and_keys_answer() {
    let mut browser = Browser::start();
    for (button, key, decision, is_action_expected) in [
        ("Accept", None, "accept", true),
        ("Reject", None, "reject", false),
        ("Accept", Some("a"), "accept", true),
        ("Reject", Some("r"), "reject", false),
    ] {
        let hub = start_compat_hub();
        let mut observer = open_observer(&hub);
        let mut page = open_subscriber_page(&hub, &mut browser);
        request_demo(&hub, "Transfer 250 euros to Ben");
        let shown = wait_for_dialog(&mut page);
        let asked =
            page.evaluate("receivedEvents.find((event) => event.type == 'aaep:agent.awaiting.confirmation')");
        for part in ["action", "consequence"] {
            assert!(shown.contains(asked[part].as_str().unwrap()), "{part}: {shown}");
        }
        page.screenshot(&format!("web_subscriber-{decision}"));
        match key {
            Some(key) => page.press(key),
            None => page.click(&format!("{DIALOG} [aria-label='{button} this action']")),
        }
        page.wait_until(&format!("document.querySelector('{DIALOG}') == null"));
        let events = read_session_events(&mut observer);
        assert_eq!(
            resolution_and_action(&events),
            (vec![(decision, "reply")], is_action_expected),
            "{button} {key:?}: {events:#?}"
        );
        let last = &events.last().unwrap()["summary_normal"];
        page.wait_until(&format!("document.querySelector('#aaep-polite-region').textContent == {last}"));
        assert_eq!(page.take_errors(), []);
    }
}

/// Everything with a summary is shown. The agent's own output has none and is not shown, as `docs/interop.md` says.
#[test]
#[ignore = "needs what `cargo xtask interop` installs"]
fn web_subscriber_shows_a_session_but_not_the_output() {
    let (hub, mut browser) = (start_compat_hub(), Browser::start());
    let mut observer = open_observer(&hub);
    let mut page = open_subscriber_page(&hub, &mut browser);
    request_demo(&hub, "What is my balance?");
    let events = read_session_events(&mut observer);
    page.wait_until("receivedEvents.at(-1)?.type == 'aaep:agent.session.completed'");
    page.run_script("document.querySelector('.aaep-event-log').open = true");
    let shown = page.text("#root").unwrap();
    for event in &events {
        let summary = event["summary_normal"].as_str().unwrap_or_default();
        assert!(shown.contains(summary), "{summary}: {shown}");
    }
    let chunk = events.iter().find_map(|event| event["chunk"].as_str()).unwrap();
    assert!(!shown.contains(chunk), "the page now shows output, so docs/interop.md must be updated: {shown}");
}

/// The page shows a clarification but cannot answer it. When the page closes, the agent receives a closure.
#[test]
#[ignore = "needs what `cargo xtask interop` installs"]
fn web_subscriber_leaves_a_clarification_unanswered_and_the_agent_continues() {
    let (hub, mut browser) = (start_compat_hub(), Browser::start());
    let mut observer = open_observer(&hub);
    let mut page = open_subscriber_page(&hub, &mut browser);
    request_demo(&hub, "What is the weather?");
    let shown = wait_for_dialog(&mut page);
    let asked =
        page.evaluate("receivedEvents.find((event) => event.type == 'aaep:agent.awaiting.clarification')");
    assert!(shown.contains(asked["question"].as_str().unwrap()), "{shown}");
    assert_eq!(page.evaluate(&format!("document.querySelectorAll('{DIALOG} :is(button, input)').length")), 0);
    page.close();
    let events = read_session_events(&mut observer);
    let by: Vec<_> = events.iter().filter_map(|event| event["extensions"]["sayso"]["by"].as_str()).collect();
    assert_eq!(by, ["closure"], "{events:#?}");
}
