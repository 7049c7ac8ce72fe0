//! What was typed and cannot be meant is told in sentences, with what to type.

#[test]
fn what_is_wrong_is_said_in_sentences() {
    let all = |command: &str| format!("Type {command} --help for all that can be typed.");
    for (typed, wrong, right) in [
        ("listen", "URL is missing.", "It is typed like this: sayso listen http://127.0.0.1:8787"),
        (
            "capture",
            "--output FILE and URL are missing.",
            "It is typed like this: sayso capture http://127.0.0.1:8787 --output session.jsonl",
        ),
        ("replay", "FILE is missing.", "It is typed like this: sayso replay session.jsonl"),
        (
            "token new",
            "--role ROLE and --name NAME are missing.",
            "It is typed like this: sayso token new --role listener --name ada",
        ),
        ("serve --nonsense", "--nonsense is not known here.", &all("sayso serve")),
        ("--plain demo --onc x", "--onc is not known here. Did you mean --once?", &all("sayso demo")),
        ("listen http://127.0.0.1:1 extra", "extra is not known here.", &all("sayso listen")),
        (
            "listen --speech --pace 101 http://127.0.0.1:1",
            "--pace N does not take 101: it takes a whole number from -100 to 100.",
            &all("sayso listen"),
        ),
        (
            "listen --speech --pace fast http://127.0.0.1:1",
            "--pace N does not take fast: it takes a whole number.",
            &all("sayso listen"),
        ),
        (
            "manifest verify bank.jws",
            "--key FILE or --jwk FILE is missing.",
            "It is typed like this: sayso manifest verify manifest.jws --jwk public.json",
        ),
        ("servee", "there is no command servee. Did you mean serve?", &all("sayso")),
        (
            "demo --auto maybe",
            "--auto HOW does not take maybe: it takes accept, reject or none.",
            &all("sayso demo"),
        ),
        ("demo --once", "--once TEXT wants something behind it.", &all("sayso demo")),
        (
            "demo --lang 9",
            "--lang TAG does not take 9: a language is a tag like en or es-MX.",
            &all("sayso demo"),
        ),
        ("listen --signed-only http://127.0.0.1:1", "--jwk FILE is missing.", &all("sayso listen")),
    ] {
        let typed: Vec<_> = typed.split(' ').collect();
        let ended = testing::cli::sayso(&typed, "");
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{typed:?}: {}", ended.err);
        let lines: Vec<_> = ended.err.lines().collect();
        assert_eq!(lines.first(), Some(&format!("sayso: {wrong}").as_str()), "{typed:?}");
        assert!(lines.contains(&right), "{typed:?}: {lines:#?}");
        assert!(lines.len() < 3 || right.starts_with("It is typed"), "{lines:#?}");
        assert!(lines.last().is_some_and(|last| last.ends_with(" --help for all that can be typed.")));
    }
}

#[test]
fn who_types_no_command_is_told_which_there_are() {
    for (typed, first) in [(&[][..], "sayso"), (&["token"], "sayso token"), (&["asp"], "sayso asp")] {
        let ended = testing::cli::sayso(typed, "");
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{typed:?}");
        let last = ended.err.lines().last().unwrap();
        assert_eq!(last, format!("sayso: no command was given; type {first} and one of the commands above."));
    }
    for asked in ["--help", "--version"] {
        let ended = testing::cli::sayso(&[asked], "");
        assert_eq!((ended.code, ended.err.as_str()), (0, ""));
        assert!(ended.out.contains("sayso"), "{}", ended.out);
    }
}
