//! Exhaustive, through the binary: every transcript cut after every message is whole as far as it goes.

use crate::asp::talk::{DEMOS, trace};

#[test]
fn a_cut_tail_leaves_a_session_that_is_still_open() {
    let mut count = 0;
    for talk in DEMOS.iter() {
        let ends = !talk.name.ends_with("-timeout");
        for length in 1..=talk.messages.len() {
            let kept: Vec<_> = talk.messages[..length].iter().map(String::as_str).collect();
            let run = talk.verify_messages(&kept);
            assert_eq!((run.code, &*run.err), (0, ""), "{} cut at {length}: {}", talk.name, run.out);
            let open = run.out.contains("\nwarning: the session is still open (");
            let ended = run.out.contains("\nThe session ended ");
            let whole = length == talk.messages.len() && ends;
            assert_eq!((open, ended), (!whole, whole), "{} cut at {length}: {}", talk.name, run.out);
            let plural = if length == 1 { "" } else { "s" };
            assert!(
                run.out.starts_with(&format!("stdin: {length} message{plural}, session ")),
                "{}",
                run.out
            );
            let traced = trace(kept.join("\n"));
            assert_eq!(traced.code, 0);
            assert_eq!(traced.out.contains("\nThe session is still open: "), !whole, "{}", traced.out);
            count += 1;
        }
    }
    println!("{count} lengths");
}

/// A message that was cut in the middle is no message.
#[test]
fn a_tail_that_is_cut_inside_a_message_is_named() {
    let talk = &DEMOS[0];
    let text = talk.text();
    let mut count = 0;
    for length in (1..text.len()).step_by(997) {
        let cut = &text[..length];
        let line = cut.lines().count();
        let run = talk.verify_bytes(cut.as_bytes(), &[]);
        let last = cut.lines().last().unwrap();
        if last == talk.messages[line - 1] {
            continue;
        }
        assert_eq!(run.code, 1, "{length}: {}", run.out);
        assert!(run.out.starts_with(&format!("stdin:{line}: error not JSON")), "{}", run.out);
        count += 1;
    }
    println!("{count} cuts inside a message");
}
