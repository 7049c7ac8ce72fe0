//! The timelines of sessions: agent text, questions in their place, Markdown, several agents, and sessions that were started by
//! another session.

use serde_json::{Value, json};

use crate::answering::{DIALOG, wait_for_question};
use crate::listening_page::{
    announcements, open_listening_page, open_page_at, tab_to, wait_for_announcement,
};
use crate::page_state_checks::{assert_no_accessibility_violations, check_state};
use testing::chromium::Browser;
use testing::http::TestClient;
use testing::hub::HubProcess;

const MARKDOWN: &str = r#"# Result

All *three* parts are **ready**, see [the report](https://example.org/report) and [this](javascript:window.harmed=1).

1. Apples
2. Pears
   - [x] washed

| Name | Price |
|---|---|
| Apple | 3 |

```rust
fn main() {}
```

> Well done.

![our logo](https://example.org/logo.png) <img src=x onerror="window.harmed=1"> and Vec<T>

<script>window.harmed=1</script>
"#;

fn start_session(client: &TestClient, title: &str) -> String {
    let start = json!({ "summary_normal": title, "localization_hints": { "primary_language": "en" } });
    client.post("/agent/v1/sessions", &start.to_string()).json_str("session_id")
}

fn write_output(client: &TestClient, session: &str, query: &str, text: &str) {
    let response = client.post(&format!("/agent/v1/sessions/{session}/output?{query}"), text);
    assert_eq!(response.status, 200, "{response:?}");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn markdown_becomes_elements_and_nothing_is_loaded() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let session = start_session(&client, "Writing a report.");
    // The cut is inside a link, so neither half contains the whole link.
    let (first, second) = MARKDOWN.split_at(MARKDOWN.find("](https").unwrap() + 1);
    write_output(&client, &session, "output_id=out_1&content_type=text%2Fmarkdown", first);
    write_output(&client, &session, "output_id=out_1&content_type=text%2Fmarkdown&complete=true", second);
    wait_for_announcement(&mut page, "Vec<T>");
    page.wait_until("document.querySelector('.output .heading') != null");
    let counts = page.evaluate(
        "Object.fromEntries(['em', 'strong', 'ol > li', 'table', 'th', 'td', 'pre', 'blockquote', 'a', 'img', 'script'].map((selector) => \
         [selector, document.querySelectorAll(`.output ${selector}`).length]))",
    );
    assert_eq!(
        counts,
        json!({ "em": 1, "strong": 1, "ol > li": 2, "table": 1, "th": 2, "td": 2, "pre": 2, "blockquote": 1, "a": 1, "img": 0, "script": 0 })
    );
    let link = page.evaluate(
        "(({ href, rel, target, parentElement }) => [href, rel, target, parentElement.textContent])(document.querySelector('.output a'))",
    );
    assert_eq!(
        link,
        json!([
            "https://example.org/report",
            "noopener noreferrer",
            "_blank",
            "All three parts are ready, see the report (example.org) and this."
        ])
    );
    assert_eq!(page.evaluate("window.harmed"), Value::Null);
    for text in [
        "Heading: Result.",
        "All three parts are ready, see the report and this.",
        "2 items.",
        "Table, 1 row, 2 columns.",
        "Name: Apple; Price: 3.",
        "Code 1, 1 line, Rust.",
        "Quote: Well done.",
        "image: our logo",
    ] {
        wait_for_announcement(&mut page, text);
    }
    let announced = announcements(&mut page).join("\n");
    assert!(!["**", "](", "| Name", "```"].iter().any(|markup| announced.contains(markup)), "{announced}");
    check_state(&mut page, "markdown");
}

/// Text that is not labelled is plain text, whatever it looks like.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn an_unlabelled_output_is_shown_as_it_was_written() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let session = start_session(&hub.client(), "Counting.");
    write_output(&hub.client(), &session, "output_id=out_1&complete=true", "1986. A **good** year.\n# rm -r");
    page.wait_until(
        "document.querySelector('.output .plain')?.textContent == '1986. A **good** year.\\n# rm -r'",
    );
}

/// A question has its place between the outputs before and after it. Its card shows the question, and then its outcome.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_question_is_a_card_in_its_place_and_then_shows_its_outcome() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let session = start_session(&client, "Paying the rent.");
    write_output(&client, &session, "output_id=out_1&complete=true", "The rent is due.");
    client.ask_confirmation(&session);
    wait_for_question(&mut page);
    let countdown = page.evaluate(&format!(
        "(({{ ariaHidden, textContent }}) => [ariaHidden, /^\\d:\\d\\d left$/.test(textContent)])({DIALOG}.querySelector('.countdown'))"
    ));
    assert_eq!(countdown, json!(["true", true]), "the countdown is visible but not announced");
    let sizes = page.evaluate(&format!(
        "[...{DIALOG}.querySelectorAll('.decision')].map((button) => {{ const style = getComputedStyle(button);
            return [button.offsetWidth, button.offsetHeight, style.fontWeight, style.backgroundColor].join(); }})"
    ));
    assert_eq!(sizes[0], sizes[1], "No and Yes have the same size and weight");
    page.press("Escape");
    page.wait_until(&format!("{DIALOG} == null"));
    let kinds = "[...document.querySelectorAll('.timeline > li')].map((item) => item.className)";
    assert_eq!(page.evaluate(kinds), json!(["output", "question-card dangerous"]));
    let badges = "[...document.querySelectorAll('.question-card .badge, #question-list .badge')].map((badge) => badge.textContent)";
    assert_eq!(
        page.evaluate(badges),
        json!(["High risk.", "This cannot be undone.", "Waiting for your answer"])
    );
    let buttons =
        "[...document.querySelectorAll('button')].filter((button) => button.textContent == 'Answer').length";
    assert_eq!(page.evaluate(buttons), 1, "a question has one button in the page");
    tab_to(&mut page, "button \"Answer local: Send 5 euros to Ben.\"");
    page.press("Enter");
    page.wait_until(&format!("{DIALOG} != null"));
    tab_to(&mut page, "button \"No, reject it\"");
    page.press("Enter");
    page.wait_until("document.querySelector('.question-card.settled.rejected') != null");
    write_output(&client, &session, "output_id=out_2&complete=true", "Nothing was paid.");
    page.wait_until("document.querySelectorAll('.timeline > li').length == 3");
    assert_eq!(page.text(".question-card").as_deref(), Some("You rejected this: Send 5 euros to Ben."));
    let largest = "[...document.querySelectorAll('.session *')].reduce((size, element) => Math.max(size, parseFloat(getComputedStyle(element).fontSize)), 0) == parseFloat(getComputedStyle(document.querySelector('.output .text')).fontSize)";
    assert_eq!(page.evaluate(largest), true, "the agent's text has the largest type of its session");
    assert!(page.take_errors().is_empty());
}

/// Sends events as a hub does for linked sessions and for several agents in one session.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn child_sessions_are_grouped_and_a_second_agent_is_named() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut number = 0;
    let mut event = |session: &str, kind: &str, agent: &str, members: Value| {
        number += 1;
        let mut event = json!({
            "@context": "https://aaep-protocol.org/context/v1",
            "type": format!("aaep:agent.{kind}"), "event_id": format!("evt_{number:032x}"), "session_id": session,
            "timestamp": "2026-11-15T12:00:00.000Z", "producer": { "agent_id": agent, "agent_name": agent },
            "localization_hints": { "primary_language": "en" },
        });
        event.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        format!("event: aaep.event\nid: {}\ndata: {event}\n\n", event["event_id"].as_str().unwrap())
    };
    let output = |text: &str| json!({ "chunk": text, "output_id": text, "complete": true });
    let parent = json!({ "summary_normal": "Searching.", "extensions": { "sayso": { "parent_session_id": "sess_a" } } });
    let stream = [
        event("sess_a", "session.started", "planner", json!({ "summary_normal": "Planning a trip." })),
        event("sess_a", "output.streaming", "planner", output("I ask the scout.")),
        event("sess_a", "output.streaming", "scout", output("There is a train.")),
        event("sess_b", "session.started", "searcher", parent),
        event("sess_c", "session.started", "mailer", json!({ "summary_normal": "Writing." })),
    ]
    .concat();
    let mut page = browser.open_page();
    page.mock_url_once(
        &format!("http://{}/aaep/v1/events", hub.address),
        "text/event-stream",
        stream.as_bytes(),
    );
    let mut page = open_page_at(&hub.address, page);
    page.wait_until("document.querySelectorAll('.session').length == 3");
    page.wait_until("document.querySelectorAll('.output .text:not(:empty)').length == 2");
    let headings = page.evaluate(
        "[...document.querySelectorAll('#session-list > .session > .children > .session h4')].map((heading) => heading.textContent)",
    );
    assert_eq!(headings, json!(["searcher: Searching."]));
    assert_eq!(page.evaluate("document.querySelectorAll('#session-list > .session').length"), 2);
    assert_eq!(
        page.evaluate("[...document.querySelectorAll('.output')].map((item) => item.textContent)"),
        json!(["I ask the scout.", "scout:There is a train."])
    );
    wait_for_announcement(&mut page, "scout: There is a train.");
    page.screenshot("child-sessions");
    assert_no_accessibility_violations(&mut page, "child sessions");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn sessions_at_work_come_before_those_that_have_ended() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let start = |summary: &str| {
        let body = json!({ "summary_normal": summary, "localization_hints": { "primary_language": "en" } });
        let started = client.post("/agent/v1/sessions", &body.to_string());
        started.json()["session_id"].as_str().unwrap().to_owned()
    };
    let end = |session: &str| {
        let event = json!({ "type": "aaep:agent.session.completed", "summary_normal": "Done." });
        assert_eq!(
            client.post(&format!("/agent/v1/sessions/{session}/events"), &event.to_string()).status,
            200
        );
    };
    let order = "[...document.querySelectorAll('#session-list > .session')].map((one) => `${one.dataset.state} ${one.querySelector('h3').textContent.split(': ')[1]}`).join('; ')";
    let wait_for_order = |page: &mut testing::chromium::Page, expected: &str| {
        page.wait_until(&format!("{order} == {}", json!(expected)));
    };
    let [first, second, third] = ["One.", "Two.", "Three."].map(start);
    wait_for_order(&mut page, "working Three.; working Two.; working One.");
    end(&third);
    wait_for_order(&mut page, "working Two.; working One.; done Three.");
    end(&first);
    wait_for_order(&mut page, "working Two.; done One.; done Three.");
    start("Four.");
    wait_for_order(&mut page, "working Four.; working Two.; done One.; done Three.");
    // A card with the focus stays where it is.
    let fifth = start("Five.");
    wait_for_order(&mut page, "working Five.; working Four.; working Two.; done One.; done Three.");
    page.run_script(&format!("document.getElementById('title-{fifth}').focus()"));
    end(&fifth);
    wait_for_order(&mut page, "done Five.; working Four.; working Two.; done One.; done Three.");
    page.run_script("document.activeElement.blur()");
    end(&second);
    wait_for_order(&mut page, "working Four.; done Five.; done Two.; done One.; done Three.");
    assert!(page.take_errors().is_empty());
}

/// While an agent works, its card says what it is doing, how far along it is and how much time is left. When it has ended, the card says
/// how long it took. Everything else that it said is under "Details".
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_card_shows_what_the_agent_does_and_what_it_said_about_the_session() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let start = json!({
        "summary_normal": "Planning a trip to Lyon.", "localization_hints": { "primary_language": "en" },
        "request_text": "Plan my trip to Lyon.", "tools_available": ["find_trains", "book_hotel"],
    });
    let session = client.post("/agent/v1/sessions", &start.to_string()).json_str("session_id");
    let publish = |event: Value| {
        let response = client.post(&format!("/agent/v1/sessions/{session}/events"), &event.to_string());
        assert_eq!(response.status, 200, "{response:?}");
    };
    publish(json!({
        "type": "aaep:agent.progress.updated", "progress": { "step": 3, "total_steps": 7 }, "eta_ms": 120_000,
        "summary_normal": "Comparing trains to Lyon on Friday.",
    }));
    page.wait_until(
        "document.querySelector('.activity').textContent == 'Comparing trains to Lyon on Friday.'",
    );
    page.wait_until("/^Working\\. Step 3 of 7\\. About 2 minutes left\\. Since \\d\\d:\\d\\d\\./.test(document.querySelector('.meta').textContent)");
    page.run_script("document.querySelector('.facts summary').click()");
    page.wait_until("document.querySelectorAll('.facts li').length == 2");
    let lines = "[...document.querySelectorAll('.facts li')].map((line) => line.textContent)";
    assert_eq!(
        page.evaluate(lines),
        json!(["The request was: Plan my trip to Lyon.", "local has these tools: find trains, book hotel"])
    );
    check_state(&mut page, "working");
    publish(json!({
        "type": "aaep:agent.session.completed", "summary_normal": "The trip is planned.",
        "result_uri": "https://trips.example/17?token=x",
    }));
    page.wait_until("/^Finished\\. \\d\\d:\\d\\d, took \\d+ seconds?\\./.test(document.querySelector('.meta').textContent)");
    page.wait_until("document.querySelector('.activity').hidden");
    assert_eq!(
        page.text(".note").as_deref(),
        Some("The trip is planned. The full result is at: trips.example")
    );
    assert_eq!(page.evaluate("document.querySelector('.note a').href"), "https://trips.example/17?token=x");
    assert_eq!(
        page.evaluate("document.querySelectorAll('[aria-live] a').length"),
        0,
        "announcements have no links"
    );
    check_state(&mut page, "finished");
}
