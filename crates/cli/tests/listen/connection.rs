//! A hub that restarts, refuses, or is not there.

use std::io::Write;
use std::process::Command;

use testing::hub::{Hub, reserved_address};
use testing::messages::CAN_REPLY;
use testing::terminal::{Agent, Person};

#[test]
fn who_cannot_connect_is_told_why() {
    let (said, code) = Person::listens(&reserved_address(), &[]).ends();
    assert_eq!(code, 2);
    assert!(
        said[0].starts_with("sayso: cannot reach http://127.0.0.1:")
            && said[0].ends_with("nothing listens there"),
        "{said:?}"
    );
    for address in ["127.0.0.1:1/?x", "user@127.0.0.1:1", ""] {
        let (said, code) = Person::listens(address, &[]).ends();
        assert_eq!(code, 2);
        assert!(said[0].contains("is no hub's address"), "{said:?}");
    }
}

#[test]
fn a_hub_that_wants_a_token_says_so_and_takes_one() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(&["--listen", "127.0.0.1:0", "--data", folder.path().to_str().unwrap()]);
    let (said, code) = Person::listens(&hub.address, &[]).ends();
    assert_eq!(code, 2);
    assert!(said[0].starts_with("sayso: The hub wants a token that it knows."), "{said:?}");
    let token = hub.said.iter().find_map(|line| line.split("shown this once: ").nth(1)).unwrap().to_owned();
    let file = folder.path().join("mine");
    std::fs::File::create(&file).unwrap().write_all(format!("{token}\n").as_bytes()).unwrap();
    let mut by_file = Person::listens(&hub.address, &["--token-file", file.to_str().unwrap()]);
    by_file.hears("Listening to");
    let mut by_name = Person::listens_as(&hub.address, &[], |command| command.env("SAYSO_TOKEN", &token));
    by_name.hears("Listening to");
    let (said, code) = Person::listens(&hub.address, &["--token", "sayso_guess"]).ends();
    assert_eq!(code, 2, "{said:?}");
}

#[test]
fn after_a_restart_of_the_hub_it_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let address = reserved_address();
    let start = || Hub::start(&["--open", "--listen", &address, "--data", folder.path().to_str().unwrap()]);
    let mut hub = start();
    let mut person = Person::is_there(&address, &[]);
    let agent = Agent::starts(hub.client());
    let token = agent.asks();
    person.hears("ask: Type");
    hub.kill();
    person.hears("notice: The connection to the hub is lost");
    person.types("status");
    let heard = person.hears("You hear normal texts.");
    let lost = "status: There is no connection now; it is tried again. This is how things stood before:";
    assert_eq!(heard[0], lost);
    assert!(heard[1].starts_with("status: Session 1, local."), "{heard:#?}");
    let hub = start();
    let heard = person.hears("is still open");
    let at = |line: &str| heard.iter().position(|one| one == line);
    let (again, nothing) = (at("notice: Connected again."), at("notice: Nothing was said meanwhile."));
    assert!(again.is_some() && again < nothing, "{heard:#?}");
    let open = &heard[heard.len() - 1];
    assert!(open.starts_with("ask: Question 1 from local is still open for"), "{open}");
    assert!(open.ends_with("Type repeat to hear it."), "{open}");
    person.types("status");
    let heard = person.hears("You hear normal texts.");
    assert!(!heard.iter().any(|line| line.contains("no connection")), "{heard:#?}");
    person.types("yes");
    assert!(agent.waits(&token, 30).contains(r#""decision":"accept""#));
    let heard = person.hears("counts: it may be done.");
    assert!(!heard.iter().any(|line| line.starts_with("ask: ")), "it asked again: {heard:#?}");
    drop(hub);
}

#[test]
fn a_hub_that_stops_says_so_and_what_was_said_meanwhile_is_heard_once() {
    let folder = tempfile::tempdir().unwrap();
    let address = reserved_address();
    let start = || Hub::start(&["--open", "--listen", &address, "--data", folder.path().to_str().unwrap()]);
    let mut hub = start();
    let mut person = Person::is_there(&address, &[]);
    let agent = Agent::starts(hub.client());
    person.hears("has begun");
    person.signal("-STOP");
    agent.says(r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_1","summary_normal":"Looking."}"#);
    assert_eq!(hub.stop(), 0);
    let _hub = start();
    agent.says(
        r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_1","status":"success"}"#,
    );
    person.signal("-CONT");
    let heard = person.hears("tool: The tool look is done.");
    let told: Vec<_> = heard.iter().filter(|line| line.starts_with("tool: ")).collect();
    assert_eq!(told, ["tool: Looking.", "tool: The tool look is done."]);
    assert!(heard.contains(&"notice: Connected again.".to_owned()), "{heard:#?}");
    assert!(heard.contains(&"notice: The hub is stopping.".to_owned()), "{heard:#?}");
}

#[test]
fn a_hub_that_forgot_everything_is_listened_to_anew() {
    let address = reserved_address();
    let start = || Hub::start(&["--open", "--memory", "--listen", &address]);
    let mut hub = start();
    let mut person = Person::is_there(&address, &[]);
    hub.kill();
    person.hears("is lost");
    let hub = start();
    person.hears("notice: Connected again, but what was said meanwhile was not kept for you.");
    person.hears("notice: No agent is at work.");
    Agent::starts(hub.client());
    person.hears("session: local has begun. Moving money.");
}

#[test]
fn signals_and_quit_end_it_well_and_the_end_of_input_does_not() {
    let hub = Hub::open();
    for signal in ["-INT", "-TERM", "-HUP"] {
        let person = Person::is_there(&hub.address, &[]);
        person.signal(signal);
        let goodbye = vec!["notice: You have stopped listening.".to_owned()];
        assert_eq!(person.ends(), (goodbye, 0), "{signal}");
    }
    let mut person = Person::is_there(&hub.address, &[]);
    person.types_no_more();
    let agent = Agent::starts(hub.client());
    person.hears("has begun");
    agent.says(r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#);
    person.hears("is done");
}

#[test]
fn an_answer_that_is_on_its_way_arrives_before_it_quits() {
    let hub = Hub::open();
    let mut person = Person::is_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    let token = agent.asks();
    person.hears("ask: Type");
    person.types("yes\nquit");
    assert_eq!(person.ends().1, 0);
    let told = agent.waits(&token, 0);
    assert!(told.contains(r#""decision":"accept","by":"reply""#), "{told}");
}

#[test]
fn a_hub_under_tls_is_listened_to_if_its_certificate_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("hub.crt"), folder.path().join("hub.key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let hub = Hub::start(&[
        "--open",
        "--memory",
        "--listen",
        "127.0.0.1:0",
        "--tls-cert",
        cert,
        "--tls-key",
        key,
        "--demo-agent",
    ]);
    let url = format!("https://{}", hub.address);
    let (said, code) = Person::listens_at(&url, &[], |command| command).ends();
    assert_eq!(code, 2);
    let untrusted = "its certificate is signed by nobody whom this machine trusts; give the certificate of who signed it with --ca";
    assert_eq!(said, [format!("sayso: cannot reach {url}: {untrusted}")]);
    let other_name = url.replace("127.0.0.1", "localhost");
    let (said, _) = Person::listens_at(&other_name, &["--ca", cert], |command| command).ends();
    assert_eq!(said, [format!("sayso: cannot reach {other_name}: its certificate is for another name")]);
    let mut person = Person::listens_at(&url, &["--ca", cert], |command| command);
    person.hears(&format!("Listening to {url}."));
    person.types("quit");
    assert_eq!(person.ends(), (vec!["notice: You have stopped listening.".to_owned()], 0));
    let (said, code) = Person::listens_at(&url, &["--ca", key], |command| command).ends();
    assert_eq!((said[0].as_str(), code), ("sayso: there is no certificate in what should be trusted", 2));
}

#[test]
fn a_certificate_for_signing_others_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    made.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let signer = rcgen::KeyPair::generate().unwrap();
    let (cert, key) = (folder.path().join("hub.crt"), folder.path().join("hub.key"));
    std::fs::write(&cert, made.self_signed(&signer).unwrap().pem()).unwrap();
    std::fs::write(&key, signer.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let hub = Hub::limited(&["--tls-cert", cert, "--tls-key", key]);
    let url = format!("https://{}", hub.address);
    let (said, code) = Person::listens_at(&url, &["--ca", cert], |command| command).ends();
    assert_eq!(code, 2);
    assert!(said[0].ends_with("it has to be made with CA:FALSE"), "{said:?}");
}

#[test]
fn whose_token_is_removed_is_told_so_and_is_not_told_that_it_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let [tokens, own] = ["tokens", "own"].map(|name| folder.path().join(name));
    let new = ["token", "new", "--role", "listener", "--name", "ada", "--tokens"];
    let made = Command::new(env!("CARGO_BIN_EXE_sayso")).args(new).arg(&tokens).output().unwrap();
    assert!(made.status.success());
    std::fs::write(&own, &made.stdout).unwrap();
    let hub = Hub::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", tokens.to_str().unwrap()]);
    let mut person = Person::is_there(&hub.address, &["--token-file", own.to_str().unwrap()]);
    std::fs::write(&tokens, "").unwrap();
    hub.signal("-HUP");
    person.hears("notice: The hub does not know your token any more");
    let (said, code) = person.ends();
    assert_eq!((said, code), (vec!["sayso: The hub does not let this token in any more.".to_owned()], 2));
}

#[test]
fn who_cannot_keep_up_is_told_and_listens_anew() {
    let hub = Hub::limited(&["--lanes-frames", "100"]);
    let mut person = Person::is_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    person.hears("has begun");
    let token = agent.asks();
    person.hears("ask: Type");
    person.signal("-STOP");
    let long = "All of it. ".repeat(1400);
    for turn in 0..20 {
        let calls: Vec<_> = (0..30)
            .flat_map(|at| {
                let number = turn * 30 + at;
                [
                    format!(r#"{{"type":"aaep:agent.tool.invoked","tool":"t","tool_call_id":"call_{number}","summary_normal":"{long}"}}"#),
                    format!(r#"{{"type":"aaep:agent.tool.completed","tool":"t","tool_call_id":"call_{number}","status":"success","summary_normal":"{long}"}}"#),
                ]
            })
            .collect();
        let path = format!("/agent/v1/sessions/{}/events", agent.session);
        let client = agent.client.with("Content-Type: application/x-ndjson");
        assert_eq!(client.post(&path, &calls.join("\n")).status, 200);
    }
    hub.logs("slow");
    person.signal("-CONT");
    person.hears("Connected again, but what was said meanwhile was not kept for you.");
    // Nobody was left to answer meanwhile, so that it is refused; a yes now must not seem to count.
    assert!(agent.waits(&token, 30).contains(r#""decision":"reject","by":"closure""#));
    person.hears("answer: Question 1 is not open any more. What became of it was not heard.");
    person.types("yes");
    person.hears("error: No question is open. Nothing was sent.");
}

#[test]
fn who_quits_says_good_bye() {
    let hub = Hub::open();
    let mut person = Person::is_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    let token = agent.asks();
    person.hears("ask: Type");
    person.types("quit");
    // One that was only lost could come back for 30 seconds; nobody is waited for that said good-bye.
    let told = agent.waits(&token, 20);
    assert!(told.contains(r#""decision":"reject","by":"closure""#), "{told}");
    let goodbye =
        "notice: You have stopped listening. The agent goes on. Question 1 stays without your answer.";
    assert_eq!(person.ends(), (vec![goodbye.to_owned()], 0));
}

#[test]
fn who_joins_late_is_told_how_things_stand_and_can_answer() {
    let hub = Hub::open();
    let client = hub.client();
    // Somebody must be there to be asked, or the question is refused at once.
    let other = client.subscribe(CAN_REPLY);
    let _ear = client.listen(&other, None);
    let agent = Agent::starts(client.clone());
    let token = agent.asks();
    let mut person = Person::is_there(&hub.address, &[]);
    let heard = person.hears("ask: Type");
    assert_eq!(heard[0], "agent: local waits for an answer.");
    assert_eq!(heard[1], "ask: Question 1, from local: May I send 5 euro to Ben?");
    person.types("yes");
    assert!(agent.waits(&token, 30).contains(r#""decision":"accept","by":"reply""#));
    person.hears("answer: Your answer to question 1 counts: it may be done.");
}

#[test]
fn a_gap_is_told_with_what_holds_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let address = reserved_address();
    let data = folder.path().to_str().unwrap();
    let start = || Hub::start(&["--open", "--listen", &address, "--data", data, "--hub-replay", "5"]);
    let mut hub = start();
    let mut person = Person::is_there(&address, &[]);
    let (first, second) = (Agent::starts(hub.client()), Agent::starts(hub.client()));
    first.says(r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#);
    person.hears("has begun");
    person.hears("has begun");
    person.signal("-STOP");
    assert_eq!(hub.stop(), 0);
    let _hub = start();
    for number in 0..20 {
        first.says(&format!(r#"{{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_{number}","summary_normal":"Looking."}}"#));
    }
    second.says(r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#);
    person.signal("-CONT");
    person.hears(
        "notice: Some of what was said while you were away is not kept any more. What holds now follows.",
    );
    person.hears("agent: In session 1: local is thinking.");
    person.hears("session: In session 2: local is over. How it ended was not heard.");
}
