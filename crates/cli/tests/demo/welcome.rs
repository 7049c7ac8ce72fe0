//! The welcome text.

use crate::demo::demo_process::DemoProcess;

#[test]
fn the_welcome_explains_the_demo_and_how_to_answer() {
    let mut demo = DemoProcess::start(&[]);
    demo.read_until("notice: Listening to ");
    let printed = demo.printed.join("\n");
    assert!(demo.printed[0].starts_with("This is the sayso demo."), "{printed}");
    for part in [
        "Nothing is real",
        "Type what you want and press Enter:",
        "  what's my balance?",
        "  send 20 euros to Ben",
        "  cancel",
        "type \"yes\" or \"no\"; if you do not answer, that counts as no",
        "\"quit\" to leave",
        "Others on this machine can listen and answer in a browser at http://127.0.0.1:",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(demo.get("/healthz").starts_with("HTTP/1.1 200"), "the hub is reachable");
    let page = demo.get("/");
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("data-demo=\"yes\""),
        "the page is served: {page:.200}"
    );
    demo.type_line("quit");
    assert_eq!(demo.wait_for_exit(), 0);
    assert_eq!(demo.printed.last().unwrap(), "notice: The demo has ended.");
}

#[test]
fn the_welcome_says_how_questions_are_answered() {
    for (auto, expected) in [
        ("accept", "Every question is answered automatically: yes."),
        ("reject", "Every question is answered automatically: no."),
        ("none", "No question is answered: each one times out"),
    ] {
        let mut demo = DemoProcess::start(&["--auto", auto]);
        demo.read_until(expected);
        demo.read_until("notice: Listening");
        demo.type_line("quit");
        assert_eq!(demo.wait_for_exit(), 0);
    }
}

#[test]
fn the_welcome_is_localized() {
    for (language, first, last) in [
        ("es-MX", "Esta es la demostración de sayso.", "aviso: La demostración ha terminado."),
        ("yo", "Àfihàn sayso nìyí.", "àkíyèsí: Àfihàn ti parí."),
        ("fr", "This is the sayso demo.", "notice: The demo has ended."),
    ] {
        let mut demo = DemoProcess::start(&["--lang", language]);
        assert!(demo.next_line().unwrap().starts_with(first), "{language}");
        demo.close_input();
        assert_eq!(demo.wait_for_exit(), 0);
        assert_eq!(demo.printed.last().unwrap(), last);
    }
}
