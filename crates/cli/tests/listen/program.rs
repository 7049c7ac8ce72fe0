//! `sayso listen --stdio`: starts a program and listens to its standard output (§B.6).

use testing::http::TestClient;
use testing::hub::reserved_address;
use testing::terminal::{AgentSession, ListenProcess};

use crate::listen::fake_hub::{accepted_message, rejected_message};

const EVENT: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.session.started","event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:00:00.000Z","producer":{"agent_id":"bank"},"summary_normal":"Moving money."}"#;
const QUESTION: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.awaiting.confirmation","event_id":"evt_2","session_id":"sess_1","timestamp":"2026-05-24T14:00:00.000Z","producer":{"agent_id":"bank"},"urgency":"critical","action":"Send it.","consequence":"It is gone.","reply_token":"rpl_1","timeout_seconds":300,"default_decision":"reject"}"#;

fn listen(program: &[&str]) -> ListenProcess {
    listen_with(&[], program)
}

fn listen_with(options: &[&str], program: &[&str]) -> ListenProcess {
    let start = ["listen", "--answer-grace", "0", "--stdio"];
    ListenProcess::start_command(&[&start, options, &["--"], program].concat(), |command| command)
}

/// Starts a shell script that answers the handshake first.
fn listen_to_script(script: &str) -> ListenProcess {
    let accepted = accepted_message("{}", "");
    let handshake =
        format!(r#"read request; echo '{{"jsonrpc":"2.0","id":1,"result":{accepted}}}'; {script}"#);
    listen(&["sh", "-c", &handshake])
}

fn event_line(event: &str) -> String {
    format!(r#"echo '{{"jsonrpc":"2.0","method":"aaep.event","params":{event}}}';"#)
}

#[test]
fn a_person_hears_and_answers_a_program() {
    let address = reserved_address();
    let program =
        [env!("CARGO_BIN_EXE_sayso"), "serve", "--stdio", "--memory", "--open", "--listen", &address];
    let mut person = listen(&program);
    person.read_until(&format!("notice: Listening to {}.", program.join(" ")));
    let agent = AgentSession::start(TestClient::new(&address));
    person.read_until("session: local has started.");
    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    person.type_line("more time");
    person.read_until("ask: More time for question 1");
    person.type_line("quieter");
    person.read_until("status:");
    person.type_line("yes");
    let reply = agent.wait_for_reply(&token, 30);
    assert!(reply.contains(r#""decision":"accept","by":"reply""#), "{reply}");
    person.read_until("answer: Accepted.");
    person.type_line("quit");
    let (output, code) = person.wait_for_exit();
    assert_eq!(code, 0, "{output:?}");
    // The program has ended with its listener, and has released its port.
    std::net::TcpListener::bind(&address).unwrap();
}

#[test]
fn standard_error_is_shown_and_never_read_as_aaep() {
    let script =
        format!("echo '{EVENT}' >&2; printf 'clear\\033[2J\\n' >&2; echo Hello; {}", event_line(QUESTION));
    let mut person = listen_to_script(&format!("{script} read reply"));
    let mut lines = person.read_until("ask: Yes or no?");
    while !["program: Hello", "program: clear\\u{1b}[2J"].iter().all(|line| lines.iter().any(|l| l == line)) {
        lines.push(person.next_line().unwrap());
    }
    assert!(lines.iter().any(|line| line.starts_with("program: {")), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("has started")), "heard from standard error: {lines:#?}");
    assert!(!person.raw_output.contains(&0x1b), "{lines:#?}");
}

#[test]
fn the_end_of_the_program_is_announced_and_decides_the_exit_code() {
    for (script, sentence, expected) in [
        ("exit 0", "The program has ended.", 0),
        ("exit 3", "The program has ended with exit code 3.", 1),
        ("kill -KILL $$", "A signal ended the program.", 1),
        ("exec 1>&-; read never", "The program has ended with exit code 1.", 1),
    ] {
        let (lines, code) = listen_to_script(&format!("{} {script}", event_line(EVENT))).wait_for_exit();
        let last = format!("notice: {sentence}");
        assert_eq!((lines.last(), code), (Some(&last), expected), "{script}: {lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("session: bank")), "{script}: {lines:#?}");
    }
    let (lines, code) = listen_to_script(&event_line(QUESTION)).wait_for_exit();
    let last = "notice: The program has ended. Open questions can no longer be answered.";
    assert_eq!((lines.last().map(String::as_str), code), (Some(last), 0), "{lines:#?}");
}

#[test]
fn a_program_that_cannot_be_listened_to_is_explained() {
    let (lines, code) = listen(&["/no/such/program"]).wait_for_exit();
    assert_eq!(code, 2);
    assert!(lines[0].starts_with("sayso: cannot reach /no/such/program: there is no such file"), "{lines:?}");
    let (lines, code) = listen(&["sh", "-c", "echo Wrong usage >&2; exit 64"]).wait_for_exit();
    assert_eq!(code, 2);
    assert_eq!(lines[0], "program: Wrong usage");
    assert!(lines[1].ends_with("The program has ended with exit code 64."), "{lines:?}");
    let error = r#"read request; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Not today."}}'; read more"#;
    let (lines, code) = listen(&["sh", "-c", error]).wait_for_exit();
    assert_eq!(code, 2);
    assert!(lines[0].starts_with("sayso: ") && lines[0].ends_with("The hub says: Not today."), "{lines:?}");
    for arguments in [&["listen", "--stdio"][..], &["listen", "--stdio", "http://127.0.0.1:1", "--", "true"]]
    {
        let (lines, code) = ListenProcess::start_command(arguments, |command| command).wait_for_exit();
        assert_eq!(code, 2, "{lines:?}");
    }
}

#[test]
fn a_program_that_only_prints_events_is_heard_and_answered() {
    let mut person =
        listen(&["sh", "-c", &format!("read request; echo '{QUESTION}'; read reply; echo \"$reply\" >&2")]);
    person.read_until("ask: Yes or no?");
    person.type_line("yes");
    let lines = person.read_until("program: {");
    let reply = lines.last().unwrap();
    assert!(
        reply.contains(r#""method":"aaep.reply""#) && reply.contains(r#""decision":"accept""#),
        "{reply}"
    );
    assert_eq!(person.wait_for_exit().1, 0);
}

#[test]
fn a_program_gets_a_smaller_request_and_answers_to_its_pings() {
    let rejected = rejected_message("capabilities_incompatible", "Too much.");
    let accepted = accepted_message("{}", "");
    let script = format!(
        r#"read request; echo '{{"jsonrpc":"2.0","id":1,"result":{rejected}}}'; read request; echo "$request" >&2; echo '{{"jsonrpc":"2.0","id":2,"result":{accepted}}}'; echo '{{"jsonrpc":"2.0","id":"p","method":"aaep.ping"}}'; read pong; echo "$pong" >&2"#
    );
    let (lines, code) = listen(&["sh", "-c", &script]).wait_for_exit();
    assert_eq!(code, 0, "{lines:#?}");
    let diagnostics: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("program: ")).collect();
    assert!(diagnostics[0].contains(r#""id":2,"method":"aaep.subscribe""#), "{lines:#?}");
    assert!(!diagnostics[0].contains("supported_extensions"), "{lines:#?}");
    assert_eq!(diagnostics[1], r#"{"jsonrpc":"2.0","result":{},"id":"p"}"#);
}

#[test]
fn a_program_that_ignores_the_end_of_its_input_is_killed() {
    let script = "trap '' HUP TERM; echo $$ >&2; while :; do sleep 1; done";
    let mut person = listen_to_script(script);
    let mut lines = Vec::new();
    while lines.len() < 2 {
        lines.push(person.next_line().unwrap());
    }
    let pid = lines.iter().find_map(|line| line.strip_prefix("program: ")).unwrap();
    person.type_line("quit");
    assert_eq!(person.wait_for_exit().1, 0);
    assert!(!std::path::Path::new("/proc").join(pid).exists());
}
