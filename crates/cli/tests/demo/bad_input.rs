//! Malformed input and invalid arguments.

use std::process::Command;

use crate::demo::demo_process::DemoProcess;

#[test]
fn malformed_lines_are_handled() {
    let mut demo = DemoProcess::start(&[]);
    demo.type_line("");
    demo.type_line("   ");
    demo.type_bytes(b"\xff\xfe\x00\x1b]0;title\x07\x1b[2J\n");
    demo.read_until("session: Demo assistant has finished. The request was not understood.");
    demo.type_bytes(&vec![b'x'; 1 << 20]);
    demo.type_line("");
    demo.read_until("error: That line is longer than 65536 bytes, so it was ignored.");
    demo.type_line(&"x".repeat(65_000));
    demo.read_until("session: Demo assistant has finished. The request was not understood.");
    demo.type_line("what's my balance?");
    demo.read_until("agent: The demo account holds 1250 euros");
    demo.type_line("quit");
    assert_eq!(demo.wait_for_exit(), 0);
    let is_control = |character: char| character.is_control() && character != '\n';
    assert!(!demo.printed.join("\n").contains(is_control), "{:#?}", demo.printed);
}

#[test]
fn invalid_arguments_are_rejected_before_any_output() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let occupied_address = listener.local_addr().unwrap().to_string();
    for (arguments, part) in [
        (["--once", ""], "needs a value"),
        (["--auto", "maybe"], "does not accept"),
        (["--lang", "not a tag"], "it must be a language tag"),
        (["--verbosity", "loud"], "does not accept"),
        (["--listen", "0.0.0.0:0"], "loopback address"),
        (["--listen", &occupied_address], "cannot listen on"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_sayso")).arg("demo").args(arguments).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(part) && output.stdout.is_empty(), "{arguments:?}: {stderr}");
    }
}
