//! `sayso service`, with a systemctl that records how it is called. The real one is used where it must fail.

use testing::cli::binary;

use super::{Home, run_command};

const UNIT: &str = ".config/systemd/user/sayso.service";

/// A systemctl that writes its arguments into a file, and fails if its first argument is in the file `failing`.
fn add_systemctl(home: &Home) {
    let log = home.path("systemctl.log").display().to_string();
    let failing = home.path("failing").display().to_string();
    home.add_program(
        "systemctl",
        &format!(
            "echo \"$*\" >> {log}\nread -r failing 2>/dev/null < {failing} || failing=\nif [ \"$2\" = \"$failing\" ]; then echo 'it failed' >&2; exit 5; fi\nexit 0"
        ),
    );
}

fn calls(home: &Home) -> Vec<String> {
    let path = home.path("systemctl.log");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(path);
    text.lines().filter(|line| !line.contains("show-environment")).map(str::to_owned).collect()
}

#[test]
fn the_service_is_installed_and_removed() {
    let home = Home::new();
    add_systemctl(&home);
    let status = home.run(&["service", "status"]);
    assert_eq!(
        (status.exit_code, status.stdout.contains("is not installed")),
        (1, true),
        "{}",
        status.stdout
    );
    calls(&home);

    let installed = home.run(&["service", "install"]);
    assert_eq!(installed.exit_code, 0, "{}", installed.stderr);
    let command = format!("ExecStart=\"{}\" serve --personal\n", binary().canonicalize().unwrap().display());
    assert!(home.read(UNIT).contains(&command), "{}", home.read(UNIT));
    assert_eq!(
        calls(&home),
        ["--user daemon-reload", "--user enable sayso.service", "--user restart sayso.service"]
    );
    assert_eq!(home.run(&["service", "install"]).exit_code, 0);
    assert_eq!(
        calls(&home).last().unwrap(),
        "--user start sayso.service",
        "a hub that runs is not disturbed"
    );

    let status = home.run(&["service", "status"]);
    assert_eq!(
        (status.exit_code, status.stdout.as_str()),
        (0, "The service is installed, starts when you log in, and is running.\n")
    );
    home.write("failing", "is-active\n");
    let status = home.run(&["service", "status"]);
    assert_eq!((status.exit_code, status.stdout.contains("is not running")), (1, true), "{}", status.stdout);
    std::fs::remove_file(home.path("failing")).unwrap();
    calls(&home);

    let removed = home.run(&["service", "remove"]);
    assert_eq!(removed.exit_code, 0, "{}", removed.stderr);
    assert_eq!(calls(&home), ["--user disable --now sayso.service", "--user daemon-reload"]);
    assert!(!home.path(".config").exists());
    let again = home.run(&["service", "remove"]);
    assert_eq!((again.exit_code, again.stdout.contains("is not installed")), (0, true));
}

#[test]
fn a_hub_that_cannot_be_started_is_an_error() {
    let home = Home::new();
    add_systemctl(&home);
    home.write("failing", "restart\n");
    let output = home.run(&["service", "install"]);
    assert_eq!(output.exit_code, 2);
    assert!(
        output.stderr.contains("it failed. If `sayso listen` is running your hub, end it first."),
        "{}",
        output.stderr
    );
}

#[test]
fn a_changed_unit_is_left_alone() {
    let home = Home::new();
    add_systemctl(&home);
    assert_eq!(home.run(&["service", "install"]).exit_code, 0);
    let changed = home.read(UNIT) + "# mine\n";
    home.write(UNIT, &changed);
    for command in ["install", "remove"] {
        let output = home.run(&["service", command]);
        assert_eq!(
            (output.exit_code, output.stderr.contains("or it was changed")),
            (2, true),
            "{}",
            output.stderr
        );
    }
    assert_eq!(home.read(UNIT), changed);
}

#[test]
fn without_systemd_there_is_no_service() {
    let home = Home::new();
    for command in ["install", "remove", "status"] {
        let output = home.run(&["service", command]);
        assert_eq!((output.exit_code, output.stdout.as_str()), (2, ""));
        assert!(output.stderr.contains("this system has no systemd"), "{}", output.stderr);
    }
    assert_eq!(home.files(), Vec::<String>::new());
    // The real program, for a user whose systemd does not run.
    let mut command = home.command(binary());
    let output = run_command(command.args(["service", "install"]).env("PATH", "/usr/bin:/bin"));
    assert_eq!((output.exit_code, output.stderr.contains("systemd")), (2, true), "{}", output.stderr);
    assert_eq!(home.files(), Vec::<String>::new());
}
