//! Settings and stop buttons take effect, and only where they should.

use serde_json::json;

use crate::answering::wait_for_question;
use crate::listening_page::{
    announcements, open_listening_page, open_page_at, open_settings, tab_to, wait_for_announcement,
    wait_until_connected,
};
use crate::page_state_checks::check_state;
use testing::chromium::{Browser, Page};
use testing::http::TestClient;
use testing::hub::HubProcess;

fn start_session(client: &TestClient, title: &str) -> String {
    let start = json!({ "summary_normal": title, "localization_hints": { "primary_language": "en" } });
    client.post("/agent/v1/sessions", &start.to_string()).json_str("session_id")
}

/// Returns whether the agent of a session can still publish an event.
fn can_publish(client: &TestClient, session: &str) -> bool {
    let state =
        json!({ "type": "aaep:agent.state.changed", "to_state": "thinking", "summary_normal": "Thinking." });
    client.post(&format!("/agent/v1/sessions/{session}/events"), &state.to_string()).status == 200
}

/// Enters a pace and waits until the hub has accepted it.
fn set_pace(page: &mut Page, pace: &str) {
    open_settings(page);
    tab_to(page, "spinbutton \"Speech rate, in words per minute\"");
    page.press("Control+a");
    page.type_text(pace);
    page.press("Tab");
    page.wait_until(
        "document.getElementById('settings-result').textContent == 'The hub now uses these settings.'",
    );
}

/// Each of three similar sessions has a button that stops only that session. The button in a question does the same.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_stop_button_stops_its_own_session() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let sessions =
        ["Writing to Ada.", "Writing to Ben.", "Writing to Chi."].map(|title| start_session(&client, title));
    page.wait_until("document.querySelectorAll('.session > button').length == 3");
    let button = page.evaluate(
        "[...document.querySelectorAll('.session')].find((element) => element.innerText.includes('Writing to Ben.')).querySelector('button').id",
    );
    page.run_script(&format!("document.getElementById({button}).focus()"));
    assert!(page.focused_node().starts_with("button \"Stop "), "{}", page.focused_node());
    assert!(
        page.focused_node().contains("Writing to Ben."),
        "the button names its session: {}",
        page.focused_node()
    );
    page.press("Enter");
    wait_for_announcement(&mut page, "You stopped ");
    assert_eq!(sessions.each_ref().map(|session| can_publish(&client, session)), [true, false, true]);
    client.ask_confirmation(&sessions[2]);
    wait_for_question(&mut page);
    tab_to(&mut page, "button \"Stop the agent\"");
    page.press("Enter");
    page.wait_until("document.querySelectorAll('.session > button').length == 1");
    assert_eq!(sessions.each_ref().map(|session| can_publish(&client, session)), [true, false, false]);
}

/// Both the page and the hub apply the new pace: a text that would take four minutes at the old pace is announced within
/// seconds.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_changed_pace_takes_effect_immediately() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = browser.open_page();
    page.run_on_new_document(
        r#"try { localStorage.getItem("sayso.settings") ?? localStorage.setItem("sayso.settings", JSON.stringify({ pace: 50 })); } catch {}"#,
    );
    let mut page = open_page_at(&hub.address, page);
    wait_until_connected(&mut page);
    assert_eq!(page.evaluate("document.getElementById('pace').value"), "50");
    set_pace(&mut page, "1000");
    let client = hub.client();
    let session = start_session(&client, "Reading aloud.");
    let path = format!("/agent/v1/sessions/{session}/output?output_id=out_1&complete=true");
    let text = "Word after word after word, and on it goes. ".repeat(22) + "That was all of it.";
    assert_eq!(client.post(&path, &text).status, 200);
    wait_for_announcement(&mut page, "That was all of it.");
}

/// Records the messages from the page to the hub.
const RECORD_REQUESTS_SCRIPT: &str = r#"
window.sent = [];
const originalFetch = window.fetch;
window.fetch = (url, options) => {
    if (String(url) == "/aaep/v1/replies") window.sent.push(JSON.parse(options.body));
    return originalFetch(url, options);
};
"#;

/// Every change sends all settings to the hub, because the hub shapes the events for its listeners.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn changed_settings_are_sent_to_the_hub() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = browser.open_page();
    page.run_on_new_document(RECORD_REQUESTS_SCRIPT);
    let mut page = open_page_at(&hub.address, page);
    wait_until_connected(&mut page);
    let wait_for_settings = |page: &mut Page, count: usize| {
        page.wait_until(&format!("sent.length == {count}"));
        page.wait_until(
            "document.getElementById('settings-result').textContent == 'The hub now uses these settings.'",
        );
        page.run_script("document.getElementById('settings-result').textContent = ''");
        let last = page.evaluate("sent.at(-1)");
        assert_eq!(last["type"], "subscription.renegotiate");
        let capability = |name: &str| last["capabilities"][name].clone();
        (capability("preferred_verbosity"), capability("pace_wpm"), capability("cognitive_load"))
    };
    open_settings(&mut page);
    tab_to(&mut page, "combobox \"Level of detail\"");
    page.press("ArrowUp");
    assert_eq!(wait_for_settings(&mut page, 1), (json!("terse"), json!(1000), json!("medium")));
    tab_to(&mut page, "spinbutton \"Speech rate, in words per minute\"");
    page.press("Control+a");
    page.type_text("900");
    page.press("Tab");
    assert_eq!(wait_for_settings(&mut page, 2), (json!("terse"), json!(900), json!("medium")));
    page.press("Space");
    assert_eq!(wait_for_settings(&mut page, 3), (json!("terse"), json!(900), json!("low")));
}

/// The settings are hidden at first. Escape hides them again, and the focus returns to their button.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn the_settings_open_and_close_by_keyboard() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    assert_eq!(page.evaluate("document.getElementById('settings').hidden"), true);
    open_settings(&mut page);
    check_state(&mut page, "settings");
    tab_to(&mut page, "combobox \"Language\"");
    page.press("Escape");
    assert!(page.focused_node().starts_with("button \"Settings\""), "{}", page.focused_node());
    assert_eq!(page.evaluate("document.getElementById('settings').hidden"), true);
}

/// Replaces the notifications of the browser, which a test cannot see.
const RECORD_NOTIFICATIONS_SCRIPT: &str = r#"
window.notified = [];
window.Notification = class extends EventTarget {
    static permission = "default";
    static async requestPermission() { return this.permission = window.answer ?? "granted"; }
    constructor(title, { body, tag }) { super(); this.tag = tag; window.notified.push(`${title}: ${body}`); }
    close() { window.notified.push(`closed ${this.tag}`); }
};
"#;

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn notifications_are_off_until_turned_on_and_only_sent_without_focus() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = browser.open_page();
    page.run_on_new_document(RECORD_NOTIFICATIONS_SCRIPT);
    let mut page = open_page_at(&hub.address, page);
    wait_until_connected(&mut page);
    let client = hub.client();
    let session = start_session(&client, "Paying.");
    let ask = |page: &mut Page, has_focus: bool| {
        page.run_script(&format!("document.hasFocus = () => {has_focus}"));
        let token = client.ask_confirmation(&session);
        wait_for_question(page);
        client.send("DELETE", &format!("/agent/v1/sessions/{session}/replies/{token}"), "");
        page.wait_until("document.querySelector('.dialog.settled') != null");
        page.press("Escape");
        (page.evaluate("notified.splice(0)"), token)
    };
    assert_eq!(ask(&mut page, false).0, json!([]), "notifications are off at first");
    page.run_script("window.answer = 'denied'");
    open_settings(&mut page);
    tab_to(&mut page, "checkbox \"Desktop notifications\"");
    page.press("Space");
    page.wait_until("document.getElementById('notify-error').textContent == 'Your browser does not allow notifications from this page.'");
    assert_eq!(page.evaluate("document.getElementById('notify').checked"), false);
    page.run_script("window.answer = 'granted'");
    page.press("Space");
    page.wait_until("document.getElementById('notify-error').textContent == '' && document.getElementById('notify').checked");
    assert_eq!(ask(&mut page, true).0, json!([]), "the page has the focus");
    let (notified, token) = ask(&mut page, false);
    assert_eq!(notified, json!(["Question from local: Send 5 euros to Ben.", format!("closed {token}")]));
}

/// In quiet mode progress appears only in the log, but errors are announced.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn quiet_mode_logs_progress_without_announcing_it() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    open_settings(&mut page);
    tab_to(&mut page, "checkbox \"Quiet\"");
    page.press("Space");
    page.wait_until(
        "document.getElementById('settings-result').textContent == 'The hub now uses these settings.'",
    );
    let client = hub.client();
    let session = start_session(&client, "Counting.");
    let progress = json!({ "type": "aaep:agent.progress.updated", "progress": { "percent": 40 }, "summary_normal": "Four of ten." });
    let events_path = format!("/agent/v1/sessions/{session}/events");
    assert_eq!(client.post(&events_path, &progress.to_string()).status, 200);
    page.wait_until("document.getElementById('log-list').textContent.includes('Four of ten.')");
    let failed = json!({ "type": "aaep:agent.session.errored", "error_category": "permanent", "recoverable": false, "summary_normal": "It broke." });
    assert_eq!(client.post(&events_path, &failed.to_string()).status, 200);
    wait_for_announcement(&mut page, "It broke.");
    let announced = announcements(&mut page);
    assert!(!announced.iter().any(|text| text.contains("Four of ten.")), "{announced:?}");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn the_help_is_shown_and_hidden_with_the_keyboard() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    tab_to(&mut page, "button \"Help\"");
    page.press("Enter");
    assert!(page.focused_node().starts_with("heading \"How this page works\""), "{}", page.focused_node());
    check_state(&mut page, "help");
    page.press("Escape");
    assert!(page.focused_node().starts_with("button \"Help\""), "{}", page.focused_node());
    assert_eq!(page.evaluate("document.getElementById('help').hidden"), true);
    assert!(page.take_errors().is_empty());
}
