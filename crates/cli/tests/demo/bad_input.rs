//! What cannot be meant is said to be so, and nothing comes of it.

use std::process::Command;

use crate::demo::run::Demo;

#[test]
fn odd_lines_are_borne() {
    let mut demo = Demo::start(&[]);
    demo.types("");
    demo.types("   ");
    demo.types_bytes(b"\xff\xfe\x00\x1b]0;title\x07\x1b[2J\n");
    demo.until("session: Demonstration assistant is done. The request was not understood.");
    demo.types_bytes(&vec![b'x'; 1 << 20]);
    demo.types("");
    demo.until("error: That line is longer than 65536 bytes; nothing was done.");
    demo.types(&"x".repeat(65_000));
    demo.until("session: Demonstration assistant is done. The request was not understood.");
    demo.types("what's my balance?");
    demo.until("agent: The demonstration account holds 1250 euros");
    demo.types("quit");
    assert_eq!(demo.end(), 0);
    let odd = |letter: char| letter.is_control() && letter != '\n';
    assert!(!demo.printed.join("\n").contains(odd), "{:#?}", demo.printed);
}

#[test]
fn what_cannot_run_is_refused_before_anything_is_said() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (arguments, why) in [
        (["--once", ""], "wants something behind it"),
        (["--auto", "maybe"], "does not take"),
        (["--lang", "not a tag"], "a language is a tag"),
        (["--verbosity", "loud"], "does not take"),
        (["--listen", "0.0.0.0:0"], "loopback only"),
        (["--listen", &taken], "cannot listen on"),
    ] {
        let refused = Command::new(env!("CARGO_BIN_EXE_sayso")).arg("demo").args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(why) && refused.stdout.is_empty(), "{arguments:?}: {said}");
    }
}
