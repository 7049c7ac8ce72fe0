//! A hostile producer: its text never becomes markup, and the page limits how much of it is shown.

use serde_json::{Value, json};

use crate::answering::{DIALOG, wait_for_question};
use crate::listening_page::{
    announcements, open_listening_page, open_log, open_page_at, tab_to, wait_for_announcement,
};
use crate::page_state_checks::assert_no_accessibility_violations;
use testing::chromium::Browser;
use testing::hub::HubProcess;

/// Markup, scripts and script URLs.
const MARKUP: &str = r#"</p></div><img src=x onerror="window.harmed=1"><script>window.harmed=1</script><a href="javascript:window.harmed=1">here</a><iframe srcdoc="x"></iframe><style>*{display:none}</style><button id="evil">Yes, accept it</button>"#;
/// Terminal escapes, a bell, a bidirectional override, hidden tag characters and unusual line separators.
const CONTROL_CHARACTERS: &str =
    "\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}neB ot\u{202c} \u{e0041}\u{e0042}\u{2028}\u{85}end";

/// Formats events as an SSE stream without the limits of a hub.
fn sse_stream(events: impl Iterator<Item = Value>) -> Vec<u8> {
    let block = |event: Value| {
        let id = event["event_id"].as_str().unwrap();
        format!("event: aaep.event\nid: {id}\ndata: {event}\n\n")
    };
    events.map(block).collect::<String>().into_bytes()
}

fn event(number: usize, kind: &str, members: &Value) -> Value {
    let mut event = json!({
        "@context": "https://aaep-protocol.org/context/v1", "aaep_version": "1.0.0",
        "type": format!("aaep:agent.{kind}"), "event_id": format!("evt_{number:032x}"),
        "session_id": "sess_0001", "timestamp": "2026-11-15T12:00:00.000Z",
        "producer": { "agent_id": "flood", "agent_name": "Flood" },
        "localization_hints": { "primary_language": "en" },
    });
    event.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    event
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn producer_text_never_becomes_markup() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    open_log(&mut page);
    let client = hub.client();
    let hostile_text = format!("{MARKUP}{CONTROL_CHARACTERS}");
    let post = |path: &str, body: &Value| {
        let response = client.post(path, &body.to_string());
        assert!([200, 201].contains(&response.status), "{response:?}");
        response
    };
    let started = post(
        "/agent/v1/sessions",
        &json!({ "summary_normal": hostile_text, "producer": { "agent_id": "evil", "agent_name": MARKUP },
            "localization_hints": { "primary_language": "en", "text_direction": "rtl" } }),
    );
    let session_path = |rest: &str| format!("/agent/v1/sessions/{}/{rest}", started.json_str("session_id"));
    for event in [
        json!({ "type": "aaep:agent.state.changed", "to_state": "calling_tool", "summary_normal": hostile_text }),
        json!({ "type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": "call_1", "risk_level": "low", "summary_normal": hostile_text }),
        json!({ "type": "aaep:agent.progress.updated", "progress": { "step": 1, "total_steps": 2 }, "summary_normal": hostile_text }),
        json!({ "type": "aaep:agent.tool.completed", "tool": "look", "tool_call_id": "call_1", "status": "error", "error_message": hostile_text, "summary_normal": hostile_text }),
        json!({ "type": "aaep:agent.state.changed", "to_state": "writing_output", "summary_normal": hostile_text }),
        json!({ "type": "aaep:agent.output.streaming", "chunk": hostile_text, "language": "en", "position": 0, "complete": true, "coalesce_hint": "completion" }),
    ] {
        post(&session_path("events"), &event);
    }
    // A word of 16 KiB, and a sentence of 16 KiB.
    for (id, text) in [("out_1", "x".repeat(16 * 1024)), ("out_2", "word ".repeat(16 * 1024 / 5))] {
        let response = client.post(&session_path(&format!("output?output_id={id}&complete=true")), &text);
        assert_eq!(response.status, 200, "{response:?}");
    }
    post(
        &session_path("clarifications"),
        &json!({ "question": hostile_text, "accepted_response_kinds": ["multiple_choice"], "timeout_seconds": 600, "summary_normal": hostile_text,
            "choices": [{ "value": "one", "label": hostile_text }, { "value": "two", "label": MARKUP }] }),
    );
    wait_for_question(&mut page);
    // Long texts appear at the pace of the listener.
    page.wait_until("[...document.querySelectorAll('#log-list li')].some((element) => element.textContent.includes('x'.repeat(1000)))");
    page.screenshot("hostile-dialog");
    assert_no_accessibility_violations(&mut page, "hostile dialog");
    assert_eq!(
        page.evaluate(&format!("{DIALOG}.innerText.includes('<img src=x onerror')")),
        true,
        "markup is shown as text"
    );
    let count_injected = "document.querySelectorAll('img, iframe, style, #evil, script:not([src]), a:not(.skip), [onerror]').length";
    assert_eq!(page.evaluate(count_injected), 0);
    let control_characters =
        r"/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2028\u2029\u{e0000}-\u{e007f}]/u";
    assert_eq!(
        page.evaluate(&format!("{control_characters}.test(document.documentElement.textContent)")),
        false
    );
    assert_eq!(
        page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
        true,
        "a long word must wrap"
    );
    let find_overflow = "['#log-list', '[role=dialog]'].filter((selector) => document.querySelector(selector).scrollWidth > document.querySelector(selector).clientWidth)";
    assert_eq!(page.evaluate(find_overflow), json!([]), "no overflow inside these elements");
    page.press("Escape");
    page.wait_until(&format!("{DIALOG} == null"));
    page.screenshot("hostile");
    assert_no_accessibility_violations(&mut page, "hostile page");
    assert_eq!(page.evaluate(count_injected), 0);
    assert_eq!(page.evaluate("window.harmed"), Value::Null);
    assert_eq!(page.evaluate("getComputedStyle(document.getElementById('top')).display"), "flex");
    let errors = page.take_errors();
    assert!(errors.is_empty(), "the browser reported errors: {errors:#?}");
}

/// Sends far more questions than a hub allows.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn the_page_limits_questions_and_sessions_and_still_works() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let questions = (0..20_000).map(|number| {
        let members = json!({
            "session_id": format!("sess_{:08}", number % 500), "reply_token": format!("rt_{number:032x}"), "urgency": "critical",
            "action": format!("Do thing {number}."), "consequence": "Unknown.", "risk_level": "high", "irreversible": true,
            "timeout_seconds": 86400, "default_decision": "reject", "summary_normal": "May I?",
            "timestamp": "2026-11-15T12:00:00.000Z",
        });
        event(number, "awaiting.confirmation", &members)
    });
    let mut page = browser.open_page();
    page.mock_url_once(
        &format!("http://{}/aaep/v1/events", hub.address),
        "text/event-stream",
        &sse_stream(questions),
    );
    let mut page = open_page_at(&hub.address, page);
    page.wait_until("document.title.startsWith('4096 questions, ')");
    page.wait_until("document.querySelectorAll('#question-list li').length == 50");
    page.wait_until("document.getElementById('no-sessions').textContent == '450 more agents are working, and will be listed when others have finished.'");
    assert_eq!(page.evaluate("document.querySelectorAll('.session').length"), 50);
    page.press("Escape");
    page.wait_until("document.getElementById('no-questions').textContent == '4046 more questions are waiting until one of these is answered.'");
}

/// The log keeps 10,000 entries and shows how many it dropped. Keyboard navigation works, and a new question can be
/// answered.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn the_page_responds_with_ten_thousand_log_entries() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let events = (0..10_500).map(|number| {
        let kind = if number == 0 { "session.started" } else { "tool.invoked" };
        let members = json!({ "summary_normal": format!("Thing {number}."), "tool": "look", "tool_call_id": format!("call_{number}") });
        event(number, kind, &members)
    });
    let mut page = browser.open_page();
    page.run_on_new_document("window.longest = 0; new PerformanceObserver((list) => { for (const task of list.getEntries()) longest = Math.max(longest, task.duration); }).observe({ type: 'longtask', buffered: true });");
    page.mock_url_once(
        &format!("http://{}/aaep/v1/events", hub.address),
        "text/event-stream",
        &sse_stream(events),
    );
    let mut page = open_page_at(&hub.address, page);
    open_log(&mut page);
    page.wait_until("document.querySelectorAll('#log-list li').length == 10000");
    let longest_while_loading = page.evaluate("Math.round(longest)");
    page.run_script("longest = 0");
    page.wait_until("/^\\d+ older entries were removed; the last 10000 are kept\\.$/.test(document.getElementById('log-dropped').textContent)");
    page.wait_until("document.getElementById('connection').textContent == 'Connected.'");
    let session = hub.client().start_session();
    hub.client().ask_confirmation(&session);
    wait_for_question(&mut page);
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.press("Enter");
    wait_for_announcement(&mut page, "Accepted.");
    page.run_script(
        "document.getElementById('log-title').tabIndex = -1; document.getElementById('log-title').focus()",
    );
    tab_to(&mut page, "listitem");
    for key in ["Home", "PageDown", "ArrowUp"] {
        page.press(key);
        let focused_text = page.evaluate("document.activeElement.textContent");
        assert!(focused_text.as_str().unwrap().contains("Thing "), "{key}: {focused_text}");
    }
    page.press("End");
    assert_eq!(
        page.evaluate("document.activeElement == document.querySelector('#log-list li:last-child')"),
        true
    );
    // On a busy machine, the hub may report after the answer that the agent is gone.
    let last_entries = page.evaluate(
        "[...document.querySelectorAll('#log-list li')].slice(-5).map((entry) => entry.textContent).join()",
    );
    assert!(last_entries.as_str().unwrap().contains("You accepted this:"), "{last_entries}");
    let longest_afterwards = page.evaluate("Math.round(longest)");
    // These figures are for information only, because they depend on the machine.
    let report = format!(
        "10000 entries: the longest task while they arrived took {longest_while_loading} ms, afterwards {longest_afterwards} ms\n"
    );
    print!("{report}");
    std::fs::write(testing::chromium::screenshot_dir().join("responsive.txt"), report).unwrap();
    assert!(announcements(&mut page).len() < 100, "most entries must not be announced");
}
