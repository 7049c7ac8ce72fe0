//! `@aaep/web-subscriber-react` in a real browser: shows a session, and its buttons answer.
//!
//! Its page is put at the hub's own origin by the browser, because the hub lets in no other. The hub knows nothing of it.

use serde_json::Value;

use crate::compat;
use testing::chromium::{Browser, Page};
use testing::http::EventStream;
use testing::hub::Hub;
use testing::messages::kind;

const DOCUMENT: &str = r#"<!doctype html><html lang="en"><meta charset="utf-8"><title>AAEP's own subscriber</title>
<div id="root"></div><script src="/web_subscriber.js"></script></html>"#;
const DIALOG: &str = "[role=dialog]";

/// The subscriber's page, connected.
fn subscriber(hub: &Hub, browser: &mut Browser) -> Page {
    let script = std::env::var("INTEROP_SCRIPT").expect("INTEROP_SCRIPT: run this by `cargo xtask interop`");
    let at = |path: &str| format!("http://{}{path}", hub.address);
    let mut page = browser.page();
    page.serve(&at("/web_subscriber"), "text/html", DOCUMENT.as_bytes());
    page.serve(&at("/web_subscriber.js"), "text/javascript", &std::fs::read(script).unwrap());
    page.go(&at("/web_subscriber"));
    page.wait("window.connection == 'connected'");
    page
}

/// Somebody who hears what the hub tells, and cannot answer.
fn listener(hub: &Hub) -> EventStream {
    let client = hub.client();
    client.listen(&client.subscribe("{}"), None)
}

fn wish(hub: &Hub, text: &str) {
    let body = serde_json::json!({ "user_message": text }).to_string();
    assert_eq!(hub.client().post("/sessions", &body).status, 201);
}

/// What the hub told a listener of ours, which cannot answer, of one session to its end.
fn told(ear: &mut EventStream) -> Vec<Value> {
    let mut told = Vec::new();
    loop {
        let (name, _, event) = ear.next();
        told.push(event);
        if name == "session.completed" {
            return told;
        }
    }
}

/// How the hub resolved what was asked, and whether the agent acted.
fn outcome(told: &[Value]) -> (Vec<(&str, &str)>, bool) {
    let resolved = told.iter().filter_map(|event| {
        let said = &event["extensions"]["sayso"];
        Some((said["decision"].as_str()?, said["by"].as_str()?))
    });
    (resolved.collect(), told.iter().any(|event| kind(event) == "tool.invoked"))
}

fn dialog(page: &mut Page) -> String {
    page.wait(&format!("document.querySelector('{DIALOG}') != null"));
    page.text(DIALOG).unwrap()
}

#[test]
#[ignore = "needs what `cargo xtask interop` installs"]
fn web_subscriber_shows_a_question_and_its_buttons_and_keys_answer() {
    let mut browser = Browser::start();
    for (button, key, decision, acts) in [
        ("Accept", None, "accept", true),
        ("Reject", None, "reject", false),
        ("Accept", Some("a"), "accept", true),
        ("Reject", Some("r"), "reject", false),
    ] {
        let hub = compat();
        let mut ear = listener(&hub);
        let mut page = subscriber(&hub, &mut browser);
        wish(&hub, "Transfer 250 euros to Ben");
        let shown = dialog(&mut page);
        let asked = page.evaluate("heard.find((event) => event.type == 'aaep:agent.awaiting.confirmation')");
        for part in ["action", "consequence"] {
            assert!(shown.contains(asked[part].as_str().unwrap()), "{part}: {shown}");
        }
        page.picture(&format!("web_subscriber-{decision}"));
        match key {
            Some(key) => page.press(key),
            None => page.click(&format!("{DIALOG} [aria-label='{button} this action']")),
        }
        page.wait(&format!("document.querySelector('{DIALOG}') == null"));
        let told = told(&mut ear);
        assert_eq!(outcome(&told), (vec![(decision, "reply")], acts), "{button} {key:?}: {told:#?}");
        let last = &told.last().unwrap()["summary_normal"];
        page.wait(&format!("document.querySelector('#aaep-polite-region').textContent == {last}"));
        assert!(page.complaints().is_empty(), "{:?}", page.complaints());
    }
}

/// All that has a summary is shown. What the agent itself answers has none, and is not: `docs/interop.md` says so.
#[test]
#[ignore = "needs what `cargo xtask interop` installs"]
fn web_subscriber_shows_a_session_but_not_what_is_answered() {
    let (hub, mut browser) = (compat(), Browser::start());
    let mut ear = listener(&hub);
    let mut page = subscriber(&hub, &mut browser);
    wish(&hub, "What is my balance?");
    let told = told(&mut ear);
    page.wait("heard.at(-1)?.type == 'aaep:agent.session.completed'");
    page.run("document.querySelector('.aaep-event-log').open = true");
    let shown = page.text("#root").unwrap();
    for event in &told {
        let summary = event["summary_normal"].as_str().unwrap_or_default();
        assert!(shown.contains(summary), "{summary}: {shown}");
    }
    let chunk = told.iter().find_map(|event| event["chunk"].as_str()).unwrap();
    assert!(
        !shown.contains(chunk),
        "it has learnt to show output, and docs/interop.md should say so: {shown}"
    );
}

/// It shows a question for what was meant, and has no way to answer it. When its page goes, the agent is told.
#[test]
#[ignore = "needs what `cargo xtask interop` installs"]
fn web_subscriber_leaves_a_clarification_unanswered_and_the_agent_goes_on() {
    let (hub, mut browser) = (compat(), Browser::start());
    let mut ear = listener(&hub);
    let mut page = subscriber(&hub, &mut browser);
    wish(&hub, "What is the weather?");
    let shown = dialog(&mut page);
    let asked = page.evaluate("heard.find((event) => event.type == 'aaep:agent.awaiting.clarification')");
    assert!(shown.contains(asked["question"].as_str().unwrap()), "{shown}");
    assert_eq!(page.evaluate(&format!("document.querySelectorAll('{DIALOG} :is(button, input)').length")), 0);
    page.close();
    let told = told(&mut ear);
    let by: Vec<_> = told.iter().filter_map(|event| event["extensions"]["sayso"]["by"].as_str()).collect();
    assert_eq!(by, ["closure"], "{told:#?}");
}
