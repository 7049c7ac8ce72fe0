//! How the hub is started and exposed: request heads, TLS, the first token, `--check` and the service manager.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use testing::cli::{create_token, run_sayso};
use testing::http::TIMEOUT;
use testing::hub::HubProcess;

use crate::serve::reload::reload;
use crate::serve::tls::create_certificate;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn mode_of(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_bare_line_feed_does_not_end_a_header_line() {
    let hub = HubProcess::start_in_memory();
    let host = format!("Host: {}\r\n", hub.address);
    for request in [
        format!("GET /healthz HTTP/1.1\r\n{host}X: y\nConnection: close\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\n{host}Connection: close\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\r\n{host}Connection: close\r\n\n"),
        format!("\nGET /healthz HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
        // A proxy that does not end lines at a bare LF would pass on the second request as part of a header.
        format!(
            "GET /healthz HTTP/1.1\r\n{host}X: y\n\nGET /readyz HTTP/1.1\r\n{host}Connection: close\r\n\r\n"
        ),
    ] {
        let response = hub.client().send_raw(request.as_bytes());
        assert!(response.starts_with("HTTP/1.1 400 "), "{request:?}: {response}");
        assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{request:?}: {response}");
        assert!(response.contains("must end with CR LF"), "{response}");
    }
    assert_eq!(hub.client().get("/healthz").status, 200);
}

#[test]
fn where_tls_is_used_browsers_are_told_never_to_use_plain_http() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = create_certificate(folder.path(), "hub");
    let policy = "Strict-Transport-Security: max-age=31536000";
    let hub = certificate.start_hub(&["--open"]);
    for path in ["/", "/healthz", "/unknown"] {
        assert!(certificate.client(&hub).send("", "GET", path, "").1.contains(policy), "{path}");
    }
    let behind_proxy = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--behind-proxy"]);
    assert!(behind_proxy.client().get("/healthz").head.contains(policy));
    let port = behind_proxy.address.rsplit(':').next().unwrap();
    let localhost = behind_proxy.client().with_header(&format!("Host: localhost:{port}")).get("/healthz");
    assert_eq!(localhost.status, 200);
    assert!(!localhost.head.contains("Strict-Transport-Security"), "other servers share the name localhost");
    assert!(!HubProcess::start_in_memory().client().get("/").head.contains("Strict-Transport-Security"));
}

#[test]
fn a_cookie_behind_a_tls_proxy_is_secure() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let ada = create_token(&file, &["--role", "listener", "--name", "ada"]);
    let base_args = ["--memory", "--listen", "127.0.0.1:0", "--tokens", &file];
    let hub = HubProcess::start(&[&base_args[..], &["--behind-proxy", "--host", "hub.example"]].concat());
    let login = |scheme: &str| {
        let client = hub.client().with_header("Content-Type: application/x-www-form-urlencoded");
        let client = client.with_header("Host: hub.example");
        client.with_header(&format!("Origin: {scheme}://hub.example")).post("/login", &format!("token={ada}"))
    };
    let signed_in = login("https");
    assert_eq!(signed_in.status, 303, "{signed_in:?}");
    let is_secure = |line: &str| line.starts_with("Set-Cookie: sayso=") && line.ends_with("; Secure");
    assert!(signed_in.head.lines().any(is_secure), "{}", signed_in.head);
    assert_eq!(login("http").status, 403, "a page without TLS is another origin");
}

#[test]
fn a_tls_key_that_others_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = create_certificate(folder.path(), "hub");
    let hub = certificate.start_hub(&["--open"]);
    for mode in [0o640, 0o604, 0o644] {
        set_mode(&certificate.key, mode);
        let start =
            [&["serve", "--memory", "--open", "--listen", "127.0.0.1:0"], &certificate.arguments()[..]];
        let refused = run_sayso(&start.concat(), "");
        assert_eq!(refused.exit_code, 2);
        assert!(refused.stderr.contains("hub.key: other users can read"), "{}", refused.stderr);
        let log_line = reload(&hub);
        assert!(log_line.contains("reload.failed what=certificate"), "{log_line}");
    }
    set_mode(&certificate.key, 0o600);
    assert!(reload(&hub).contains("reloaded what=certificate"));
}

#[test]
fn the_first_token_is_in_a_private_file_and_not_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let hub = HubProcess::start(&[
        "--listen",
        "127.0.0.1:0",
        "--data",
        data.to_str().unwrap(),
        "--log-level",
        "trace",
    ]);
    let token = hub.admin_token();
    assert!(token.starts_with("sayso_"), "{token}");
    assert_eq!(mode_of(&data.join("admin-token")), 0o600);
    assert_eq!(mode_of(&data), 0o700);
    assert_eq!(hub.client().with_bearer(&token).get("/metrics").status, 200);
    let startup_lines = hub.startup_lines.clone();
    let lines = startup_lines.into_iter().chain(hub.stop_and_collect_log());
    assert_eq!(lines.filter(|line| line.contains(&token)).count(), 0);

    let mut in_memory = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0"]);
    let token = in_memory.admin_token();
    assert!(!in_memory.startup_lines.iter().any(|line| line.contains(&token)));
    let path =
        in_memory.startup_lines.iter().find_map(|line| line.strip_prefix("the admin token is in ")).unwrap();
    let path = Path::new(path).to_owned();
    assert_eq!(mode_of(&path), 0o600);
    assert_eq!(in_memory.client().with_bearer(&token).get("/metrics").status, 200);
    assert_eq!(in_memory.stop(), 0);
    assert!(!path.exists(), "the file is deleted when the hub stops");
}

#[test]
fn a_public_address_without_tls_is_refused_unless_a_proxy_terminates_tls() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = create_certificate(folder.path(), "hub");
    let public = ["--memory", "--listen", "0.0.0.0:0"];
    let refused = run_sayso(&[&["serve"], &public[..]].concat(), "");
    assert_eq!(refused.exit_code, 2);
    assert!(refused.stderr.contains("--behind-proxy"), "{}", refused.stderr);
    HubProcess::start(&[&public[..], &["--behind-proxy"]].concat());
    HubProcess::start(&[&public[..], &certificate.arguments()].concat());
    for flag in ["--open", "--compat"] {
        let loopback = ["serve", "--memory", "--listen", "127.0.0.1:0", "--behind-proxy", flag];
        let refused = run_sayso(&loopback, "");
        assert_eq!(refused.exit_code, 2, "a proxy passes on callers from other machines");
        assert!(refused.stderr.contains(flag), "{}", refused.stderr);
    }
}

#[test]
fn nothing_is_created_when_the_address_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let socket = folder.path().join("socket");
    let data = folder.path().join("data");
    let arguments = ["serve", "--listen", &address, "--data", data.to_str().unwrap()];
    let refused = run_sayso(&[&arguments[..], &["--unix", socket.to_str().unwrap()]].concat(), "");
    assert_eq!(refused.exit_code, 2);
    assert!(refused.stderr.contains("cannot listen on"), "{}", refused.stderr);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn check_reports_every_problem_and_creates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = create_certificate(folder.path(), "hub");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let check = |arguments: &[&str]| run_sayso(&[&["serve", "--check"], arguments].concat(), "");
    let few_connections = ["--http-connections", "100"];
    let new_data = path("new");
    let good = check(&[&few_connections[..], &["--data", &new_data]].concat());
    assert_eq!((good.exit_code, good.stderr.as_str()), (0, ""));
    assert_eq!(good.stdout, "The configuration has no problems.\n");
    assert!(!Path::new(&new_data).exists(), "nothing is created");

    let (data, tokens) = (path("data"), path("tokens"));
    std::fs::create_dir(&data).unwrap();
    set_mode(Path::new(&data), 0o755);
    std::fs::write(&tokens, "not a token\n").unwrap();
    set_mode(Path::new(&tokens), 0o600);
    set_mode(&certificate.key, 0o644);
    let bad = format!(
        "--data {data} --tokens {tokens} --http-connections 1000000 --listen 0.0.0.0:1 --compat \
         --http-trusted-proxies 10.0.0.0/33 --retention-bytes 2MiB --journal-max-bytes 1MiB {}",
        certificate.arguments().join(" ")
    );
    let bad = check(&bad.split_whitespace().collect::<Vec<_>>());
    assert_eq!((bad.exit_code, bad.stdout.as_str()), (2, ""));
    for problem in [
        "retention.bytes is larger than journal.max_bytes",
        "--compat accepts answers without a handshake",
        "hub.key: other users can read",
        "tokens:1: not a valid token",
        "http.trusted_proxies: \"10.0.0.0/33\" is not an address or a network",
        "data: other users can read it (mode 755); run chmod 700",
        "http.connections is 1000000, but the limit of",
    ] {
        let found = bad.stderr.lines().filter(|line| line.starts_with("sayso: ") && line.contains(problem));
        assert_eq!(found.count(), 1, "{problem}: {}", bad.stderr);
    }
    assert_eq!(bad.stderr.lines().count(), 7, "{}", bad.stderr);
    let open = check(&[&few_connections[..], &["--memory", "--open", "--listen", "0.0.0.0:1"]].concat());
    assert_eq!(open.stderr.lines().count(), 2, "open on a public address, and without TLS: {}", open.stderr);
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0);
}

#[test]
fn check_reports_problems_of_the_socket_and_of_the_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let check = |arguments: &[&str]| {
        let all = [&["serve", "--check", "--http-connections", "100"], arguments].concat();
        let output = run_sayso(&all, "");
        assert_eq!(output.exit_code == 0, output.stderr.is_empty(), "{}", output.stderr);
        output.stderr
    };
    let data = path("data");
    // A hub has created its keys and its socket.
    let socket = path("hub.sock");
    let mut hub = HubProcess::start(&["--listen", "127.0.0.1:0", "--data", &data, "--unix", &socket]);
    // A configuration can be checked while the hub runs.
    assert_eq!(check(&["--memory", "--unix", &socket]), "");
    assert_eq!(hub.stop(), 0);
    assert_eq!(check(&["--data", &data, "--unix", &socket]), "");

    let long = path(&"s".repeat(120));
    assert!(check(&["--memory", "--unix", &long]).contains("cannot listen on"));
    let file = path("data/tokens");
    assert!(check(&["--memory", "--unix", &file]).contains("not a socket"));
    assert!(check(&["--memory", "--unix", &path("missing/hub.sock")]).contains("cannot listen on"));

    for name in ["manifest.key", "sign-in.key"] {
        let key = folder.path().join("data").join(name);
        set_mode(&key, 0o644);
        let readable = check(&["--data", &data]);
        assert!(readable.contains(&format!("{name}: other users can read")), "{readable}");
        set_mode(&key, 0o600);
        let content = std::fs::read(&key).unwrap();
        std::fs::write(&key, "not a key").unwrap();
        let damaged = check(&["--data", &data]);
        assert!(damaged.contains(name) && damaged.lines().count() == 1, "{damaged}");
        std::fs::write(&key, content).unwrap();
    }
    assert_eq!(check(&["--data", &data]), "");
}

#[test]
#[cfg(feature = "postgres")]
fn check_looks_at_the_database_and_changes_nothing_there() {
    let test = "check_looks_at_the_database_and_changes_nothing_there";
    if !testing::postgres::is_installed(test) {
        return;
    }
    let server = testing::postgres::PostgresServer::start();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (data, address) = (path("data"), server.address());
    let check = |journal: &str, arguments: &[&str]| {
        let common = ["serve", "--check", "--http-connections", "100", "--journal", journal];
        let output = run_sayso(&[&common, arguments].concat(), "");
        assert_eq!(output.exit_code == 0, output.stderr.is_empty(), "{}", output.stderr);
        output.stderr
    };
    assert_eq!(check(&address, &["--data", &data]), "");
    assert_eq!(server.sql("SELECT to_regnamespace('sayso') IS NULL"), "t");
    let unreachable = check("postgres://sayso@127.0.0.1:1/sayso", &["--data", &data]);
    assert!(unreachable.contains("cannot connect to postgres://sayso@127.0.0.1:1"), "{unreachable}");
    let unsafe_settings = check(&address, &["--data", &data, "--journal-replicas", "1"]);
    assert!(unsafe_settings.contains("synchronous_standby_names"), "{unsafe_settings}");

    // The first node of a cluster writes the admin token to its folder.
    let cluster = ["--cluster", "--cluster-listen", "127.0.0.1:0", "--data", &data];
    std::fs::create_dir(&data).unwrap();
    set_mode(Path::new(&data), 0o755);
    assert!(check(&address, &cluster).contains("other users can read it"));
    set_mode(Path::new(&data), 0o700);
    let all = [&["--listen", "127.0.0.1:0", "--journal", &address, "--journal-lease", "1s"], &cluster[..]];
    let mut hub = HubProcess::start(&all.concat());
    assert_eq!(hub.stop(), 0);
    // Later the tokens come from the database, and the folder does not matter.
    set_mode(Path::new(&data), 0o755);
    std::fs::write(path("data/tokens"), "not a token\n").unwrap();
    assert_eq!(check(&address, &cluster), "");
    let other_count = check(&address, &[&cluster[..], &["--hub-shards", "3"]].concat());
    assert!(other_count.contains("16 shards"), "{other_count}");
    server.sql("UPDATE sayso.shared_text SET content = 'not a token' WHERE name = 'tokens'");
    let damaged = check(&address, &cluster);
    assert!(damaged.contains("tokens in the database:1: not a valid token"), "{damaged}");
}

#[test]
fn the_service_manager_is_told_when_the_hub_is_ready_reloads_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let next_notification = || {
        let mut buffer = [0; 1024];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.args(["serve", "--memory", "--open", "--listen", "127.0.0.1:0"]).env("NOTIFY_SOCKET", &path);
    let mut hub = HubProcess::start_command(&mut command);
    assert_eq!(next_notification().trim_end(), "READY=1");
    hub.signal("-HUP");
    let reloading = next_notification();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(next_notification().trim_end(), "READY=1");
    assert_eq!(hub.stop(), 0);
    assert_eq!(next_notification().trim_end(), "STOPPING=1");
}

#[test]
fn the_help_is_short_and_lists_limits_only_on_request() {
    for flag in ["-h", "--help"] {
        let help = run_sayso(&["serve", flag], "").stdout;
        assert!(help.lines().count() < 60, "{help}");
        assert!(help.contains("--help-limits") && !help.contains("--hub-lease"), "{help}");
    }
    let limits = run_sayso(&["serve", "--help-limits"], "");
    assert_eq!(limits.exit_code, 0);
    assert!(limits.stdout.contains("--hub-lease") && !limits.stdout.contains("--print-config"));
}
