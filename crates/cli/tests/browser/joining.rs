//! Coming late, being one of several, losing the connection.

use crate::answering::{DIALOG, asked};
use crate::listening::{connected, hears, listening, said, tab_to, visit};
use crate::relay::Relay;
use crate::state::{check, check_kept_out};
use testing::chromium::Browser;
use testing::hub::{Hub, reserved_address};

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn who_comes_late_is_told_how_things_stand_and_can_answer() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let client = hub.client();
    let mut first = listening(&hub, &mut browser);
    let session = client.start();
    let token = client.ask(&session);
    asked(&mut first);
    let mut late = listening(&hub, &mut browser);
    asked(&mut late);
    check(&mut late, "late");
    tab_to(&mut late, "button \"Yes, accept it\"");
    late.press("Enter");
    hears(&mut late, "You accepted this:");
    let answer = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=30"));
    assert_eq!((answer.text("decision"), answer.text("by")), ("accept".to_owned(), "reply".to_owned()));
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn what_is_settled_elsewhere_is_withdrawn_and_says_how() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let client = hub.client();
    let (mut one, mut other) = (listening(&hub, &mut browser), listening(&hub, &mut browser));
    let session = client.start();
    client.ask(&session);
    asked(&mut one);
    asked(&mut other);
    tab_to(&mut one, "button \"Yes, accept it\"");
    one.press("Enter");
    hears(&mut one, "You accepted this:");
    other.wait(&format!("{DIALOG}.innerText.includes('Somebody else accepted this:')"));
    assert!(other.focused().starts_with("dialog \"This question is over\""), "{}", other.focused());
    check(&mut other, "settled-elsewhere");
    assert_eq!(other.evaluate(&format!("{DIALOG}.innerText.includes('Yes, accept it')")), false);
    tab_to(&mut other, "button \"Close\"");
    other.press("Enter");
    other.wait(&format!("{DIALOG} == null"));
    assert!(!other.focused().starts_with("RootWebArea"), "the keyboard is somewhere: {}", other.focused());
    other.shows("No question is open.");
}

/// The hub is killed with a question open and comes back with the same data: the page notices, says so once, comes back by itself,
/// and the question can be answered.
#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn a_connection_that_is_lost_comes_back_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    let address = reserved_address();
    let data = folder.path().to_str().unwrap();
    let start = || Hub::start(&["--open", "--listen", &address, "--data", data, "--hub-resume-window", "1h"]);
    let mut hub = start();
    let mut page = listening(&hub, &mut browser);
    let session = hub.client().start();
    let token = hub.client().ask(&session);
    asked(&mut page);
    hub.kill();
    hears(&mut page, "The connection to the hub is lost.");
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.press("Enter");
    hears(&mut page, "The answer could not be sent.");
    check_kept_out(&mut page, "lost");
    let hub = start();
    connected(&mut page);
    hears(&mut page, "Connected again.");
    assert!(page.complaints().iter().all(|one| one.about == "network"));
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.press("Enter");
    hears(&mut page, "You accepted this:");
    let answer = hub.client().get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=30"));
    assert_eq!((answer.text("decision"), answer.text("by")), ("accept".to_owned(), "reply".to_owned()));
    let said = said(&mut page);
    let count = |part: &str| said.iter().filter(|one| one.contains(part)).count();
    assert_eq!((count("is lost"), count("Connected again."), count("Moving money.")), (1, 1, 1), "{said:#?}");
    check(&mut page, "connected-again");
}

/// The hub goes on while the page cannot reach it; what was missed is one sentence, and in the log.
#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn what_was_missed_is_said_in_one_sentence() {
    let (relay, mut browser) = (Relay::new(), Browser::start());
    let hub = Hub::limited(&["--host", &relay.address, "--hub-resume-window", "1h"]);
    relay.join(&hub.address);
    let client = hub.client();
    let mut page = visit(&relay.address, browser.page());
    connected(&mut page);
    let session = client.start();
    hears(&mut page, "Moving money.");
    relay.cut();
    page.wait("document.getElementById('connection').textContent.includes('is lost')");
    let post = |event: serde_json::Value| {
        let answer = client.post(&format!("/agent/v1/sessions/{session}/events"), &event.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
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
    relay.join(&hub.address);
    connected(&mut page);
    hears(&mut page, "things happened meanwhile in 1 session. The log has them.");
    page.wait("document.getElementById('log-list').innerText.includes('Looking, time 5.')");
    let log = page.text("#log-list").unwrap();
    for number in 1..=5 {
        assert_eq!(log.matches(&format!("Looking, time {number}.")).count(), 1, "{log}");
    }
    let said = said(&mut page);
    assert!(!said.iter().any(|one| one.contains("Looking, time")), "not one by one: {said:#?}");
    assert_eq!(said.iter().filter(|one| one.contains("Moving money.")).count(), 1, "{said:#?}");
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn a_question_that_the_agent_takes_back_is_withdrawn() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    let session = hub.client().start();
    let token = hub.client().ask(&session);
    asked(&mut page);
    tab_to(&mut page, "button \"Yes, accept it\"");
    let answer = hub.client().send("DELETE", &format!("/agent/v1/sessions/{session}/replies/{token}"), "");
    assert!((200..300).contains(&answer.status), "{answer:?}");
    page.wait(&format!("{DIALOG}?.innerText.includes('This question was withdrawn:') === true"));
    check(&mut page, "withdrawn");
    // Whoever was about to say yes presses a moment too late, and says it to nothing.
    assert!(page.focused().starts_with("button \"Close\""), "{}", page.focused());
    page.press("Enter");
    page.wait(&format!("{DIALOG} == null"));
    let answer = hub.client().get(&format!("/agent/v1/sessions/{session}/replies/{token}"));
    assert_eq!((answer.text("decision"), answer.text("by")), ("reject".to_owned(), "cancelled".to_owned()));
    hears(&mut page, "This question was withdrawn:");
}

/// The agent is gone in the middle of its question: the hub ends the session for it, and nobody is left with a dead dialog.
#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn an_agent_that_vanishes_takes_its_question_with_it() {
    let (hub, mut browser) = (Hub::limited(&["--hub-lease", "30s"]), Browser::start());
    let mut page = listening(&hub, &mut browser);
    let session = hub.client().start();
    hub.client().ask(&session);
    asked(&mut page);
    page.wait(&format!("{DIALOG}?.innerText.includes('This question is over') === true"));
    check(&mut page, "vanished");
    tab_to(&mut page, "button \"Close\"");
    page.press("Enter");
    hears(&mut page, "Error:");
    page.shows("No question is open.");
    page.shows("Failed.");
}
