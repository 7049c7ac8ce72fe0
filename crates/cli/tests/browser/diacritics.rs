//! The rendering of letters with combining marks.

use serde_json::json;

use crate::listening_page::{open_listening_page, open_log, wait_for_announcement};
use testing::chromium::Browser;
use testing::hub::HubProcess;

/// Finds the letter with two combining marks in the log. Returns the text of its node, its width, and its width together with
/// the next letter. Both letters must be in one text node.
const MEASURE_WIDTH_SCRIPT: &str = r#"(() => {
    const walk = document.createTreeWalker(document.getElementById("log-list"), NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node != null; node = walk.nextNode()) {
        const at = node.data.indexOf("o\u0323\u0301o");
        if (at < 0) continue;
        const width = (end) => {
            const range = document.createRange();
            range.setStart(node, at);
            range.setEnd(node, end);
            return range.getBoundingClientRect().width;
        };
        return { text: node.data, marked: width(at + 3), both: width(at + 4) };
    }
    return null;
})()"#;

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn marks_are_drawn_on_their_letters_wherever_chunks_are_split() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    open_log(&mut page);
    let client = hub.client();
    let session = client.start_session();
    wait_for_announcement(&mut page, "Moving money.");
    let writing = json!({ "type": "aaep:agent.state.changed", "to_state": "writing_output" });
    let path = |rest: &str| format!("/agent/v1/sessions/{session}/{rest}");
    assert_eq!(client.post(&path("events"), &writing.to_string()).status, 200);
    for chunk in ["\u{1eb8}", "\u{301}ko ni ilu nla. B", "o\u{323}", "\u{301}o ni."] {
        assert_eq!(client.post(&path("output?output_id=out_1"), chunk).status, 200);
    }
    assert_eq!(client.post(&path("output?output_id=out_1&complete=true"), "").status, 200);
    wait_for_announcement(&mut page, "Bo\u{323}\u{301}o ni.");
    page.wait_until(&format!("{MEASURE_WIDTH_SCRIPT} != null"));
    let widths = page.evaluate(MEASURE_WIDTH_SCRIPT);
    let (marked, both) = (widths["marked"].as_f64().unwrap(), widths["both"].as_f64().unwrap());
    // The letter is as wide as the unmarked letter after it. A separately drawn mark would add width.
    assert!(marked > 0.0 && marked < (both - marked) * 1.2, "{widths}");
    page.screenshot("marks");
}
