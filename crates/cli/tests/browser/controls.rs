//! What the person sets and stops by hand: it holds, and for nothing else.

use serde_json::json;

use crate::answering::asked;
use crate::listening::{connected, hears, listening, said, tab_to, visit};
use testing::chromium::{Browser, Page};
use testing::http::Client;
use testing::hub::Hub;

fn begins(client: &Client, title: &str) -> String {
    let start = json!({ "summary_normal": title, "localization_hints": { "primary_language": "en" } });
    client.post("/agent/v1/sessions", &start.to_string()).text("session_id")
}

/// Whether the agent of a session can still say something.
fn goes_on(client: &Client, session: &str) -> bool {
    let state =
        json!({ "type": "aaep:agent.state.changed", "to_state": "thinking", "summary_normal": "Thinking." });
    client.post(&format!("/agent/v1/sessions/{session}/events"), &state.to_string()).status == 200
}

/// Puts this into the field for the pace.
fn set_pace(page: &mut Page, pace: &str) {
    tab_to(page, "spinbutton \"Pace, in words a minute\"");
    page.press("Control+a");
    page.write(pace);
    page.press("Tab");
    page.wait(
        "document.getElementById('settings-result').textContent == 'The hub follows these settings now.'",
    );
}

/// Three sessions that look alike; each button stops the one that it is named for, and so does the one beside a question.
#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn who_is_stopped_is_the_one_that_was_meant() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    let client = hub.client();
    let sessions =
        ["Writing to Ada.", "Writing to Ben.", "Writing to Chi."].map(|title| begins(&client, title));
    page.wait("document.querySelectorAll('#session-list button').length == 3");
    let button = page.evaluate(
        "[...document.querySelectorAll('#session-list li')].find((one) => one.innerText.includes('Writing to Ben.')).querySelector('button').id",
    );
    page.run(&format!("document.getElementById({button}).focus()"));
    assert!(page.focused().starts_with("button \"Stop "), "{}", page.focused());
    assert!(page.focused().contains("Writing to Ben."), "it says whom it stops: {}", page.focused());
    page.press("Enter");
    hears(&mut page, "Stopped by a person:");
    assert_eq!(sessions.each_ref().map(|one| goes_on(&client, one)), [true, false, true]);
    client.ask(&sessions[2]);
    asked(&mut page);
    tab_to(&mut page, "button \"Stop the agent\"");
    page.press("Enter");
    page.wait("document.querySelectorAll('#session-list button').length == 1");
    assert_eq!(sessions.each_ref().map(|one| goes_on(&client, one)), [true, false, false]);
}

/// What would take four minutes at the pace of before is said in seconds, by the page and by the hub.
#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn a_pace_that_is_set_holds_at_once() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = browser.page();
    page.before(
        r#"try { localStorage.getItem("sayso.settings") ?? localStorage.setItem("sayso.settings", JSON.stringify({ pace: 50 })); } catch {}"#,
    );
    let mut page = visit(&hub.address, page);
    connected(&mut page);
    assert_eq!(page.evaluate("document.getElementById('pace').value"), "50");
    set_pace(&mut page, "1000");
    let client = hub.client();
    let session = begins(&client, "Reading aloud.");
    let path = format!("/agent/v1/sessions/{session}/output?output_id=out_1&complete=true");
    let text = "Word after word after word, and on it goes. ".repeat(22) + "That was all of it.";
    assert_eq!(client.post(&path, &text).status, 200);
    hears(&mut page, "That was all of it.");
}

/// Notes what the page says to the hub.
const SENT: &str = r#"
window.sent = [];
const fetched = window.fetch;
window.fetch = (to, how) => {
    if (String(to) == "/aaep/v1/replies") window.sent.push(JSON.parse(how.body));
    return fetched(to, how);
};
"#;

/// A hub that knows what its listeners want can spare them the rest; so each change is told, and all of it.
#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn what_is_set_is_told_to_the_hub() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = browser.page();
    page.before(SENT);
    let mut page = visit(&hub.address, page);
    connected(&mut page);
    let told = |page: &mut Page, count: usize| {
        page.wait(&format!("sent.length == {count}"));
        page.wait(
            "document.getElementById('settings-result').textContent == 'The hub follows these settings now.'",
        );
        page.run("document.getElementById('settings-result').textContent = ''");
        let last = page.evaluate("sent.at(-1)");
        assert_eq!(last["type"], "subscription.renegotiate");
        let of = |name: &str| last["capabilities"][name].clone();
        (of("preferred_verbosity"), of("pace_wpm"), of("cognitive_load"))
    };
    tab_to(&mut page, "combobox \"How much is said\"");
    page.press("ArrowUp");
    assert_eq!(told(&mut page, 1), (json!("terse"), json!(1000), json!("medium")));
    tab_to(&mut page, "spinbutton \"Pace, in words a minute\"");
    page.press("Control+a");
    page.write("900");
    page.press("Tab");
    assert_eq!(told(&mut page, 2), (json!("terse"), json!(900), json!("medium")));
    page.press("Space");
    assert_eq!(told(&mut page, 3), (json!("terse"), json!(900), json!("low")));
}

/// Who wants it quiet is told of no progress; the log has it, and what goes wrong is said.
#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn quiet_keeps_progress_in_the_log() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    tab_to(&mut page, "checkbox \"Quiet\"");
    page.press("Space");
    page.wait(
        "document.getElementById('settings-result').textContent == 'The hub follows these settings now.'",
    );
    let client = hub.client();
    let session = begins(&client, "Counting.");
    let progress = json!({ "type": "aaep:agent.progress.updated", "progress": { "percent": 40 }, "summary_normal": "Four of ten." });
    let events = format!("/agent/v1/sessions/{session}/events");
    assert_eq!(client.post(&events, &progress.to_string()).status, 200);
    page.wait("document.getElementById('log-list').textContent.includes('Four of ten.')");
    let failed = json!({ "type": "aaep:agent.session.errored", "error_category": "permanent", "recoverable": false, "summary_normal": "It broke." });
    assert_eq!(client.post(&events, &failed.to_string()).status, 200);
    hears(&mut page, "It broke.");
    let said = said(&mut page);
    assert!(!said.iter().any(|one| one.contains("Four of ten.")), "{said:?}");
}
