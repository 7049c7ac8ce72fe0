//! That the browser's driver does what it says, on a page of its own at the hub's origin.

use testing::chromium::{Browser, Look, Page};
use testing::hub::Hub;

const DOCUMENT: &str = r#"<!doctype html><html lang="en"><title>Try</title>
<main><h1>Try</h1><p role="status" aria-live="polite" id="said">Nothing yet.</p>
<label>Name <input id="name"></label>
<button id="go">Go on</button></main><script src="/try.js"></script>"#;
const SCRIPT: &str = r#"
document.getElementById("go").onclick = () =>
    document.getElementById("said").textContent = "Hello, " + document.getElementById("name").value + ".";
"#;

fn tried(hub: &Hub, page: &mut Page, document: &str) {
    let at = |path: &str| format!("http://{}{path}", hub.address);
    page.serve(&at("/try"), "text/html; charset=utf-8", document.as_bytes());
    page.serve(&at("/try.js"), "text/javascript", SCRIPT.as_bytes());
    page.go(&at("/try"));
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn a_page_is_used_by_keyboard_and_read_as_a_screen_reader_would() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = browser.page();
    tried(&hub, &mut page, DOCUMENT);
    page.press("Tab");
    assert_eq!(page.focused(), r#"textbox "Name" focused"#);
    page.write("Ada L.");
    page.press("Tab");
    assert_eq!(page.focused(), r#"button "Go on" focused"#);
    page.press("Enter");
    page.shows("Hello, Ada L..");
    assert_eq!(page.text("#said").as_deref(), Some("Hello, Ada L.."));
    page.press("Shift+Tab");
    let wanted = r#"RootWebArea "Try" focused
  main
    heading "Try" level=1
    status live=polite atomic: "Hello, Ada L.."
    text "Name"
    textbox "Name" value "Ada L." focused
    button "Go on"
"#;
    assert_eq!(page.tree(), wanted);
    assert!(page.complaints().is_empty(), "{:?}", page.complaints());
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn what_goes_wrong_in_a_page_is_noticed() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = browser.page();
    let document = r#"<!doctype html><html lang="en"><title>Try</title><script>1</script><script src="/try.js"></script>
<img src="/nothing.png" alt="">"#;
    tried(&hub, &mut page, document);
    page.run("console.error('written'); Promise.reject(new Error('thrown'))");
    let all = page.complaints();
    for (about, part) in [
        ("security", "Content Security Policy"),
        ("javascript", "Cannot set properties of null"),
        ("network", "404"),
        ("console", "written"),
        ("javascript", "thrown"),
    ] {
        assert!(all.iter().any(|one| one.about == about && one.text.contains(part)), "{part}: {all:#?}");
    }
    assert!(page.complaints().is_empty(), "told once");
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn a_page_can_be_looked_at_in_many_ways() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = browser.page();
    tried(&hub, &mut page, DOCUMENT);
    let media = |query: &str| format!("matchMedia('({query})').matches");
    page.look(Look { forced_colours: true, reduced_motion: true, ..Look::DARK });
    for query in ["prefers-color-scheme: dark", "forced-colors: active", "prefers-reduced-motion: reduce"] {
        assert_eq!(page.evaluate(&media(query)), true, "{query}");
    }
    page.look(Look::LIGHT);
    assert_eq!(page.evaluate(&media("prefers-color-scheme: dark")), false);
    page.window(1280, 1024, 400);
    assert_eq!(page.evaluate("[innerWidth, devicePixelRatio]"), serde_json::json!([320, 4]));
    let picture = std::fs::read(page.picture("harness")).unwrap();
    assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n") && picture.ends_with(b"IEND\xaeB`\x82"));
    page.offline(true);
    assert_eq!(page.evaluate("fetch('/healthz').then(() => 'there', () => 'gone')"), "gone");
    page.offline(false);
    assert_eq!(page.evaluate("fetch('/healthz').then(() => 'there', () => 'gone')"), "there");
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn strangers_share_no_cookies_and_windows_do() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let (mut one, mut two, mut stranger) = (browser.page(), browser.page(), browser.stranger());
    for page in [&mut one, &mut two, &mut stranger] {
        tried(&hub, page, DOCUMENT);
    }
    one.run("document.cookie = 'who=ada'");
    assert_eq!(two.evaluate("document.cookie"), "who=ada");
    assert_eq!(stranger.evaluate("document.cookie"), "");
    two.click("#go");
    two.shows("Hello, .");
    two.reload();
    two.shows("Nothing yet.");
    two.close();
    assert_eq!(one.evaluate("document.cookie"), "who=ada");
}
