//! What it says first.

use crate::demo::run::Demo;

#[test]
fn it_says_first_what_it_does_and_how_to_answer() {
    let mut demo = Demo::start(&[]);
    demo.until("notice: Listening to ");
    let said = demo.printed.join("\n");
    assert!(demo.printed[0].starts_with("This is the demonstration of sayso."), "{said}");
    for part in [
        "Nothing is real",
        "Type what you want, then Enter.",
        "  what's my balance?",
        "  send 20 euro to Ben",
        "  cancel",
        "type yes or no; no answer means no",
        "quit to end",
        "Others on this machine can listen and answer in a browser at http://127.0.0.1:",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(demo.get("/healthz").starts_with("HTTP/1.1 200"), "others find it there");
    let page = demo.get("/");
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("data-demo=\"yes\""),
        "so does a browser: {page:.200}"
    );
    demo.types("quit");
    assert_eq!(demo.end(), 0);
    assert_eq!(demo.printed.last().unwrap(), "notice: The demonstration has ended.");
}

#[test]
fn whoever_answers_is_told() {
    for (auto, said) in [
        ("accept", "Questions are answered without you: yes to each."),
        ("reject", "Questions are answered without you: no to each."),
        ("none", "Questions are not answered: each runs out of time"),
    ] {
        let mut demo = Demo::start(&["--auto", auto]);
        demo.until(said);
        demo.until("notice: Listening");
        demo.types("quit");
        assert_eq!(demo.end(), 0);
    }
}

#[test]
fn it_says_so_in_the_language_that_was_asked_for() {
    for (language, first, last) in [
        ("es-MX", "Esta es la demostración de sayso.", "notice: La demostración ha terminado."),
        ("yo", "Àfihàn sayso nìyí.", "notice: Àfihàn ti parí."),
        ("fr", "This is the demonstration of sayso.", "notice: The demonstration has ended."),
    ] {
        let mut demo = Demo::start(&["--lang", language]);
        assert!(demo.line().unwrap().starts_with(first), "{language}");
        demo.hangs_up();
        assert_eq!(demo.end(), 0);
        assert_eq!(demo.printed.last().unwrap(), last);
    }
}
