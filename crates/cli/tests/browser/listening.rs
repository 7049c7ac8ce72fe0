//! Somebody at the listening page: a browser, a page of it, and what can be checked in every state.

use serde_json::{Value, json};

use testing::chromium::{Browser, Page};
use testing::hub::Hub;

/// Notes all that is put into a live region, wherever and whenever: what a screen reader would say of it.
const NOTES: &str = r#"
window.said = [];
new MutationObserver((changes) => {
    for (const change of changes) {
        const region = change.target.nodeType == 1 ? change.target : change.target.parentElement;
        if (region?.closest("[aria-live]") == null) continue;
        for (const added of change.addedNodes) window.said.push(added.textContent);
    }
}).observe(document, { childList: true, subtree: true });
"#;

/// The quickest pace that can be set; nobody listens.
const QUICK: &str = r#"try { localStorage.getItem("sayso.settings") ??
    localStorage.setItem("sayso.settings", JSON.stringify({ pace: 1000 })); } catch {}"#;

/// A page at the hub's address, not necessarily let in.
pub(crate) fn visit(address: &str, mut page: Page) -> Page {
    page.before(NOTES);
    page.before(QUICK);
    page.go(&format!("http://{address}/"));
    page
}

/// A page that hears.
pub(crate) fn listening(hub: &Hub, browser: &mut Browser) -> Page {
    let mut page = visit(&hub.address, browser.page());
    connected(&mut page);
    page
}

pub(crate) fn connected(page: &mut Page) {
    page.wait("document.getElementById('connection').textContent == 'Connected.'");
}

/// Goes on by the Tab key until this has the keyboard.
pub(crate) fn tab_to(page: &mut Page, wanted: &str) {
    let mut seen = Vec::new();
    for _ in 0..80 {
        page.press("Tab");
        let here = page.focused();
        if here.starts_with(wanted) {
            return;
        }
        seen.push(here);
    }
    panic!("no {wanted} by Tab, but {seen:#?}");
}

/// Waits until this was said, in this or a longer sentence.
pub(crate) fn hears(page: &mut Page, text: &str) {
    page.wait(&format!("said.some((one) => one.includes({}))", json!(text)));
}

/// All that was said so far.
pub(crate) fn said(page: &mut Page) -> Vec<String> {
    let Value::Array(said) = page.evaluate("said") else { panic!("no notes") };
    said.iter().map(|one| one.as_str().unwrap().to_owned()).collect()
}
