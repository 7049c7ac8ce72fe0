//! Late joining, several listeners and lost connections.

use crate::answering::{DIALOG, wait_for_question};
use crate::listening_page::{
    announcements, open_listening_page, open_log, open_page_at, tab_to, wait_for_announcement,
    wait_until_connected,
};
use crate::page_state_checks::{check_state, check_state_with_network_errors};
use crate::tcp_relay::TcpRelay;
use testing::chromium::Browser;
use testing::hub::{HubProcess, reserved_address};

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_late_listener_sees_the_open_question_and_can_answer() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let client = hub.client();
    let mut first = open_listening_page(&hub, &mut browser);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    wait_for_question(&mut first);
    let mut late = open_listening_page(&hub, &mut browser);
    wait_for_question(&mut late);
    check_state(&mut late, "late");
    tab_to(&mut late, "button \"Yes, accept it\"");
    late.press("Enter");
    wait_for_announcement(&mut late, "Accepted.");
    let response = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=30"));
    assert_eq!(
        (response.json_str("decision"), response.json_str("by")),
        ("accept".to_owned(), "reply".to_owned())
    );
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_question_answered_elsewhere_closes_and_shows_the_decision() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let client = hub.client();
    let (mut first, mut second) =
        (open_listening_page(&hub, &mut browser), open_listening_page(&hub, &mut browser));
    let session = client.start_session();
    client.ask_confirmation(&session);
    wait_for_question(&mut first);
    wait_for_question(&mut second);
    tab_to(&mut first, "button \"Yes, accept it\"");
    first.press("Enter");
    wait_for_announcement(&mut first, "Accepted.");
    second.wait_until(&format!("{DIALOG}.innerText.includes('Someone else accepted this:')"));
    assert!(
        second.focused_node().starts_with("dialog \"This question is closed\""),
        "{}",
        second.focused_node()
    );
    check_state(&mut second, "answered-elsewhere");
    assert_eq!(second.evaluate(&format!("{DIALOG}.innerText.includes('Yes, accept it')")), false);
    tab_to(&mut second, "button \"Close\"");
    second.press("Enter");
    second.wait_until(&format!("{DIALOG} == null"));
    assert!(
        !second.focused_node().starts_with("RootWebArea"),
        "the focus must not be lost: {}",
        second.focused_node()
    );
    second.wait_for_text("No question is open.");
}

/// The hub is killed while a question is open and restarts with the same data. The page announces the loss once,
/// reconnects by itself, and the question can be answered.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn the_page_reconnects_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    let address = reserved_address();
    let data = folder.path().to_str().unwrap();
    let start =
        || HubProcess::start(&["--open", "--listen", &address, "--data", data, "--hub-resume-window", "1h"]);
    let mut hub = start();
    let mut page = open_listening_page(&hub, &mut browser);
    let session = hub.client().start_session();
    let token = hub.client().ask_confirmation(&session);
    wait_for_question(&mut page);
    hub.kill();
    wait_for_announcement(&mut page, "Connection to the hub lost.");
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.press("Enter");
    wait_for_announcement(&mut page, "Your answer was not sent.");
    check_state_with_network_errors(&mut page, "lost");
    let hub = start();
    wait_until_connected(&mut page);
    wait_for_announcement(&mut page, "Reconnected.");
    assert!(page.take_errors().iter().all(|error| error.source == "network"));
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.press("Enter");
    wait_for_announcement(&mut page, "Accepted.");
    let response = hub.client().get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=30"));
    assert_eq!(
        (response.json_str("decision"), response.json_str("by")),
        ("accept".to_owned(), "reply".to_owned())
    );
    let announced = announcements(&mut page);
    let count = |part: &str| announced.iter().filter(|text| text.contains(part)).count();
    assert_eq!(
        (count("Connection to the hub lost."), count("Reconnected."), count("Moving money.")),
        (1, 1, 1),
        "{announced:#?}"
    );
    check_state(&mut page, "reconnected");
}

/// The hub keeps working while the page cannot reach it. Missed events are summarized in one sentence and listed in the
/// log.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn missed_events_are_announced_in_one_sentence() {
    let (relay, mut browser) = (TcpRelay::new(), Browser::start());
    let hub = HubProcess::start_in_memory_with(&["--host", &relay.address, "--hub-resume-window", "1h"]);
    relay.connect_to(&hub.address);
    let client = hub.client();
    let mut page = open_page_at(&relay.address, browser.open_page());
    wait_until_connected(&mut page);
    open_log(&mut page);
    let session = client.start_session();
    wait_for_announcement(&mut page, "Moving money.");
    relay.disconnect();
    page.wait_until(
        "document.getElementById('connection').textContent.includes('Connection to the hub lost')",
    );
    let post = |event: serde_json::Value| {
        let response = client.post(&format!("/agent/v1/sessions/{session}/events"), &event.to_string());
        assert_eq!(response.status, 200, "{response:?}");
    };
    post(
        serde_json::json!({ "type": "aaep:agent.state.changed", "to_state": "calling_tool", "summary_normal": "Calling." }),
    );
    for number in 1..=5 {
        post(
            serde_json::json!({ "type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": format!("call_{number}"),
            "risk_level": "low", "summary_normal": format!("Looking, time {number}.") }),
        );
    }
    relay.connect_to(&hub.address);
    wait_until_connected(&mut page);
    wait_for_announcement(&mut page, "messages in 1 session. They are in the log.");
    page.wait_until("document.getElementById('log-list').innerText.includes('Looking, time 5.')");
    let log = page.text("#log-list").unwrap();
    for number in 1..=5 {
        assert_eq!(log.matches(&format!("Looking, time {number}.")).count(), 1, "{log}");
    }
    let announced = announcements(&mut page);
    assert!(
        !announced.iter().any(|text| text.contains("Looking, time")),
        "missed events must not be announced one by one: {announced:#?}"
    );
    assert_eq!(announced.iter().filter(|text| text.contains("Moving money.")).count(), 1, "{announced:#?}");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_question_withdrawn_by_its_agent_closes() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let session = hub.client().start_session();
    let token = hub.client().ask_confirmation(&session);
    wait_for_question(&mut page);
    tab_to(&mut page, "button \"Yes, accept it\"");
    let response = hub.client().send("DELETE", &format!("/agent/v1/sessions/{session}/replies/{token}"), "");
    assert!((200..300).contains(&response.status), "{response:?}");
    page.wait_until(&format!("{DIALOG}?.innerText.includes('This question was withdrawn:') === true"));
    check_state(&mut page, "withdrawn");
    // A person who was about to accept presses Enter a moment too late. Enter must only close the dialog.
    assert!(page.focused_node().starts_with("button \"Close\""), "{}", page.focused_node());
    page.press("Enter");
    page.wait_until(&format!("{DIALOG} == null"));
    let response = hub.client().get(&format!("/agent/v1/sessions/{session}/replies/{token}"));
    assert_eq!(
        (response.json_str("decision"), response.json_str("by")),
        ("reject".to_owned(), "cancelled".to_owned())
    );
    wait_for_announcement(&mut page, "This question was withdrawn:");
}

/// The agent disappears while its question is open. The hub ends the session, and the dialog closes.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn the_question_of_a_lost_agent_closes() {
    let (hub, mut browser) = (HubProcess::start_in_memory_with(&["--hub-lease", "30s"]), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let session = hub.client().start_session();
    hub.client().ask_confirmation(&session);
    wait_for_question(&mut page);
    page.wait_until(&format!("{DIALOG}?.innerText.includes('This question is closed') === true"));
    check_state(&mut page, "agent-lost");
    tab_to(&mut page, "button \"Close\"");
    page.press("Enter");
    wait_for_announcement(&mut page, "Error:");
    page.wait_for_text("No question is open.");
    page.wait_until("document.querySelector('.session .badge.failed')?.textContent == 'Failed.'");
}
