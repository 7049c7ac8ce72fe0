//! Usage errors: a short sentence about the mistake, and the command to type instead.

#[test]
fn usage_errors_name_the_mistake_and_the_next_step() {
    let help_hint = |command: &str| format!("Type {command} --help for all options.");
    for (arguments, error, hint) in [
        (
            "capture",
            "--output FILE and URL are missing.",
            "Example: sayso capture http://127.0.0.1:8787 --output session.jsonl",
        ),
        ("replay", "FILE is missing.", "Example: sayso replay session.jsonl"),
        (
            "token new",
            "--role ROLE and --name NAME are missing.",
            "Example: sayso token new --role listener --name ada",
        ),
        ("serve --nonsense", "--nonsense is not a known argument here.", &help_hint("sayso serve")),
        (
            "--plain demo --onc x",
            "--onc is not a known argument here. Did you mean --once?",
            &help_hint("sayso demo"),
        ),
        (
            "listen http://127.0.0.1:1 extra",
            "extra is not a known argument here.",
            &help_hint("sayso listen"),
        ),
        (
            "listen --speech --pace 101 http://127.0.0.1:1",
            "--pace N does not accept 101: it must be a whole number from -100 to 100.",
            &help_hint("sayso listen"),
        ),
        (
            "listen --speech --pace fast http://127.0.0.1:1",
            "--pace N does not accept fast: it must be a whole number.",
            &help_hint("sayso listen"),
        ),
        (
            "listen --braille http://127.0.0.1:1",
            "--braille [HOST:N] does not accept http://127.0.0.1:1: it must be HOST:N, such as 127.0.0.1:0; write the hub's address before --braille.",
            &help_hint("sayso listen"),
        ),
        (
            "manifest verify bank.jws",
            "--key FILE or --jwk FILE is missing.",
            "Example: sayso manifest verify manifest.jws --jwk public.json",
        ),
        ("servee", "unknown command servee. Did you mean serve?", &help_hint("sayso")),
        (
            "demo --auto maybe",
            "--auto HOW does not accept maybe: use accept, reject or none.",
            &help_hint("sayso demo"),
        ),
        ("demo --once", "--once TEXT needs a value.", &help_hint("sayso demo")),
        (
            "demo --lang 9",
            "--lang TAG does not accept 9: it must be a language tag such as en or es-MX.",
            &help_hint("sayso demo"),
        ),
        ("listen --signed-only http://127.0.0.1:1", "--jwk FILE is missing.", &help_hint("sayso listen")),
    ] {
        let arguments: Vec<_> = arguments.split(' ').collect();
        let output = testing::cli::run_sayso(&arguments, "");
        assert_eq!((output.exit_code, output.stdout.as_str()), (2, ""), "{arguments:?}: {}", output.stderr);
        let lines: Vec<_> = output.stderr.lines().collect();
        assert_eq!(lines.first(), Some(&format!("sayso: {error}").as_str()), "{arguments:?}");
        assert!(lines.contains(&hint), "{arguments:?}: {lines:#?}");
        assert!(lines.len() < 3 || hint.starts_with("Example: "), "{lines:#?}");
        assert!(lines.last().is_some_and(|last| last.ends_with(" --help for all options.")));
    }
}

#[test]
fn a_missing_command_lists_the_commands() {
    for (arguments, prefix) in [(&[][..], "sayso"), (&["token"], "sayso token"), (&["asp"], "sayso asp")] {
        let output = testing::cli::run_sayso(arguments, "");
        assert_eq!((output.exit_code, output.stdout.as_str()), (2, ""), "{arguments:?}");
        let last = output.stderr.lines().last().unwrap();
        assert_eq!(last, format!("sayso: no command given; type {prefix} and one of the commands above."));
    }
    for flag in ["--help", "--version"] {
        let output = testing::cli::run_sayso(&[flag], "");
        assert_eq!((output.exit_code, output.stderr.as_str()), (0, ""));
        assert!(output.stdout.contains("sayso"), "{}", output.stdout);
    }
}
