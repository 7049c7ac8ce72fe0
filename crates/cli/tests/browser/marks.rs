//! Letters with marks, as they are drawn.

use serde_json::json;

use crate::listening::{hears, listening};
use testing::chromium::Browser;
use testing::hub::Hub;

/// The letter with two marks in the log, which is in one piece of text: how wide it is drawn, and with the same letter after it.
const DRAWN: &str = r#"(() => {
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
        return { text: node.data, marked: width(at + 3), next: width(at + 4) };
    }
    return null;
})()"#;

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn marks_are_drawn_on_their_letters_wherever_the_text_was_cut() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    let client = hub.client();
    let session = client.start();
    hears(&mut page, "Moving money.");
    let writing = json!({ "type": "aaep:agent.state.changed", "to_state": "writing_output" });
    let path = |rest: &str| format!("/agent/v1/sessions/{session}/{rest}");
    assert_eq!(client.post(&path("events"), &writing.to_string()).status, 200);
    for piece in ["\u{1eb8}", "\u{301}ko ni ilu nla. B", "o\u{323}", "\u{301}o ni."] {
        assert_eq!(client.post(&path("output?output_id=out_1"), piece).status, 200);
    }
    assert_eq!(client.post(&path("output?output_id=out_1&complete=true"), "").status, 200);
    hears(&mut page, "Bo\u{323}\u{301}o ni.");
    page.wait(&format!("{DRAWN} != null"));
    let drawn = page.evaluate(DRAWN);
    let (marked, next) = (drawn["marked"].as_f64().unwrap(), drawn["next"].as_f64().unwrap());
    // It is as wide as the letter alone that follows: a mark that stood by itself would take room.
    assert!(marked > 0.0 && marked < (next - marked) * 1.2, "{drawn}");
    page.picture("marks");
}
