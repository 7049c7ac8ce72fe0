//! `sayso ask`, `sayso tell` and `sayso explain`.

use testing::cli::{CommandOutput, run_sayso};
use testing::hub::HubProcess;
#[cfg(unix)]
use testing::terminal::ListenProcess;

fn ask(address: &str, arguments: &[&str]) -> CommandOutput {
    run_sayso(&[&["ask", "Delete the old backups?", "--hub", address], arguments].concat(), "")
}

#[cfg(unix)]
#[test]
fn the_exit_code_of_ask_is_the_persons_answer() {
    let dangerous = ["--consequence", "The backups are gone.", "--risk", "high", "--irreversible"];
    for (typed, exit_code, stderr) in [("yes", 0, ""), ("no", 1, "sayso: no: the person refused\n")] {
        for arguments in [&[][..], &dangerous] {
            let hub = HubProcess::start_in_memory();
            let mut listener = ListenProcess::start_connected(&hub.address, &[]);
            let address = hub.address.clone();
            let output = std::thread::scope(|scope| {
                let asked = scope.spawn(|| ask(&address, arguments));
                listener.read_until("ask: Yes or no?");
                listener.type_line(&format!("{typed} 1"));
                asked.join().unwrap()
            });
            assert_eq!(output.exit_code, exit_code, "{typed} {arguments:?}: {}", output.stderr);
            assert!(output.stderr.ends_with(stderr), "{}", output.stderr);
            assert_eq!(output.stdout, "");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_question_from_a_script_is_heard_once() {
    let hub = HubProcess::start_in_memory();
    let mut listener = ListenProcess::start_connected(&hub.address, &[]);
    let address = hub.address.clone();
    let heard = std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask(&address, &["--timeout", "120"]));
        let mut heard = listener.read_until("ask: Yes or no?");
        listener.type_line("details");
        heard.extend(listener.read_until("ask: "));
        listener.type_line("yes 1");
        heard.extend(listener.read_until("session: shell has finished."));
        assert_eq!(asked.join().unwrap().exit_code, 0);
        heard
    });
    assert_eq!(
        heard,
        [
            "session: shell has started. A question from a script.",
            "ask: shell: Delete the old backups?",
            "ask: You have 2 minutes.",
            "ask: Yes or no?",
            "ask: Without an answer, that counts as no.",
            "answer: Your answer to question 1: yes",
            "session: shell has finished. Done.",
        ]
    );
}

#[test]
fn a_question_that_nobody_hears_is_a_no() {
    let hub = HubProcess::start_in_memory();
    for arguments in [&[][..], &["--consequence", "The backups are gone."]] {
        let output = ask(&hub.address, arguments);
        assert_eq!(output.exit_code, 1);
        assert!(output.stderr.contains("sayso: no: nobody could be asked"), "{}", output.stderr);
    }
}

#[test]
fn ask_and_tell_exit_with_2_if_they_cannot_run() {
    let output = run_sayso(&["ask", "Go on?", "--hub", "http://127.0.0.1:1", "--token", "sayso_x"], "");
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    let output = run_sayso(&["tell", "", "--hub", "127.0.0.1:1"], "");
    assert_eq!((output.exit_code, output.stderr.as_str()), (2, "sayso: there is no text to announce\n"));
    let output = run_sayso(&["ask", "Go on?", "--irreversible"], "");
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.contains("--consequence"), "{}", output.stderr);
}

#[cfg(unix)]
#[test]
fn listeners_hear_what_a_script_reports() {
    let hub = HubProcess::start_in_memory();
    let mut listener = ListenProcess::start_connected(&hub.address, &[]);
    let tell = |arguments: &[&str], input: &str| {
        let output =
            run_sayso(&[&["tell", "--hub", &hub.address, "--agent", "backup"], arguments].concat(), input);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
    };
    tell(&["The backup is complete."], "");
    let heard = listener.read_until("has finished");
    assert_eq!(
        heard,
        [
            "session: backup has started. A message from a script.",
            "agent: The backup is complete.",
            "session: backup has finished. Done.",
        ]
    );
    tell(&[], "**Two** files were skipped.\n");
    listener.read_until("agent: Two files were skipped.");
}

#[test]
fn explain_describes_one_rule_or_lists_all() {
    let output = run_sayso(&["explain", "aaep-4.4.1-7"], "");
    assert_eq!(output.exit_code, 0);
    assert!(output.stdout.starts_with("AAEP-4.4.1-7: "), "{}", output.stdout);
    assert!(output.stdout.contains("section 4.4.1"), "{}", output.stdout);
    let all = run_sayso(&["explain"], "").stdout;
    for rule in aaep::rule::Rule::all() {
        assert!(all.contains(&format!("{} {}\n", rule.id(), rule.sentence())), "{}", rule.id());
    }
    // The others are requirements that only `sayso check` reports.
    let requirements = include_str!("../../../docs/requirements.tsv");
    for id in all.lines().filter_map(|line| line.split(' ').next()).filter(|id| !id.starts_with("C-")) {
        assert!(requirements.contains(&format!("\n{id}\t")), "{id}");
    }
    for (id, source) in [
        ("C-G6", "It is our decision C-G6, because"),
        ("AAEP-4.1.1s-2", "It comes from the JSON Schema for section 4.1.1 of the AAEP specification."),
        ("AAEP-A.4-1", "It comes from appendix A, section A.4, of the AAEP specification."),
        ("AAEP-GS.5.3-1", "It comes from section 5.3 of the AAEP guide for subscribers."),
    ] {
        let explained = run_sayso(&["explain", id], "").stdout;
        assert!(explained.lines().any(|line| line.starts_with(source)), "{id}: {explained}");
    }
    let unknown = run_sayso(&["explain", "AAEP-0-0"], "");
    assert_eq!(unknown.exit_code, 2);
    assert!(unknown.stderr.contains("`sayso explain` lists all rules"), "{}", unknown.stderr);
}
