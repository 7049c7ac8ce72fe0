//! Hand-offs in the page: the list of agents that wait for somebody, taking over, declining, and the outcome for everybody.

use serde_json::json;

use crate::answering::pass_answer_grace;
use crate::listening_page::{open_listening_page, tab_to, wait_for_announcement};
use crate::page_state_checks::check_state;
use testing::chromium::Browser;
use testing::http::TestClient;
use testing::hub::HubProcess;

/// Asks somebody to take over. Returns the session and the reply token.
fn hand_off(client: &TestClient, reason: &str, urgency: &str) -> (String, String) {
    let session = client.start_session();
    let body = json!({
        "reason": reason, "target_kind": "human", "summary_normal": "I need a person.", "urgency_for_handoff": urgency,
        "packaged_context": { "order": "A-17", "steps": ["looked", "asked"] },
    });
    let response = client.post(&format!("/agent/v1/sessions/{session}/handoffs"), &body.to_string());
    assert_eq!(response.status, 201, "{response:?}");
    (session, response.json_str("reply_token"))
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_person_takes_over_and_everybody_hears_it() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let mut other = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let (session, token) = hand_off(&client, "The refund needs a person.", "medium");
    let (other_session, urgent) = hand_off(&client, "A customer waits.", "high");
    wait_for_announcement(
        &mut page,
        "local is handing over to a person. It is urgent. I need a person. Reason: A customer waits. You can take over: see the list of hand-offs.",
    );
    let titles = "[...document.querySelectorAll('#handoff-list .title')].map((title) => title.textContent)";
    page.wait_until("document.querySelectorAll('#handoff-list > li').length == 2");
    assert_eq!(
        page.evaluate(titles),
        json!(["local: A customer waits.", "local: The refund needs a person."]),
        "the most urgent one is first"
    );
    assert_eq!(
        page.text("#handoff-list .detail").as_deref(),
        Some("It passes on: order A-17, steps (looked, asked)")
    );
    check_state(&mut page, "handoffs");
    // The page's clock moves on, because a click right after a change to the list is not sent.
    pass_answer_grace(&mut page);
    page.run_script("document.getElementById('questions-title').focus()");
    tab_to(&mut page, "button \"Take over local: A customer waits.\"");
    tab_to(&mut page, "textbox \"A note for the agent (optional)\"");
    page.type_text("I am calling you.");
    tab_to(&mut page, "button \"Take over local: The refund needs a person.\"");
    page.press("Enter");
    wait_for_announcement(&mut page, "You have taken over from local.");
    wait_for_announcement(&mut other, "Someone has taken over from local. They say: I am calling you.");
    let outcome = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=30"));
    assert!(
        outcome.body.contains("acknowledged") && outcome.body.contains("I am calling you."),
        "{outcome:?}"
    );
    page.wait_until("document.querySelectorAll('#handoff-list > li').length == 1");
    page.wait_until("[...document.querySelectorAll('.note')].some((note) => note.textContent == 'You have taken over from local.')");
    // The list has just changed, so this press could have been meant for the hand-off that is gone.
    page.run_script("performance.now = () => 0; document.getElementById('reject-' + document.querySelector('#handoff-list .title').id.replace('handoff-', '')).focus()");
    page.press("Enter");
    page.run_script("performance.now = () => 100000");
    page.press("Enter");
    wait_for_announcement(&mut page, "You declined to take over from local.");
    page.wait_until("document.getElementById('handoffs').hidden");
    let outcome = client.get(&format!("/agent/v1/sessions/{other_session}/replies/{urgent}?wait=30"));
    assert!(outcome.body.contains("rejected"), "{outcome:?}");
    wait_for_announcement(&mut other, "Someone declined to take over from local.");
    assert!(page.take_errors().is_empty());
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn an_answer_right_after_the_list_has_changed_is_not_sent() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    page.run_script("performance.now = () => 0");
    let client = hub.client();
    let (session, token) = hand_off(&client, "The refund needs a person.", "low");
    page.wait_until("document.querySelectorAll('#handoff-list > li').length == 1");
    tab_to(&mut page, "button \"Take over local: The refund needs a person.\"");
    page.press("Enter");
    wait_for_announcement(&mut page, "The list has just changed, so nothing was sent. Try again.");
    let pending = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=0"));
    assert_eq!(pending.body, r#"{"status":"pending"}"#);
    pass_answer_grace(&mut page);
    page.press("Enter");
    wait_for_announcement(&mut page, "You have taken over from local.");
}
