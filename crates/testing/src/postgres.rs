//! Postgres servers for tests, each in a temporary folder, without a system service and without a TCP port.

use std::fmt::Write as _;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const START_TIMEOUT: Duration = Duration::from_mins(1);
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// Returns the folder with the server's programs: `POSTGRES_BIN`, or the newest version where Debian installs it.
/// `None` if Postgres is not installed.
pub fn find_programs() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("POSTGRES_BIN") {
        return Some(PathBuf::from(folder));
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    folders.filter(|folder| folder.join("initdb").exists()).max()
}

/// Returns whether Postgres is installed. Otherwise prints that the test is skipped.
pub fn is_installed(test: &str) -> bool {
    let is_installed = find_programs().is_some();
    if !is_installed {
        eprintln!("skipped: {test} needs Postgres; install Debian's postgresql, or set POSTGRES_BIN");
    }
    is_installed
}

/// A running server. Dropping it kills the server and deletes its data.
pub struct PostgresServer {
    folder: TempDir,
    process: Option<Child>,
    options: Vec<String>,
}

impl PostgresServer {
    /// Starts a server with an empty database.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with these settings, such as `fsync=off`.
    pub fn start_with(settings: &[&str]) -> Self {
        let mut server = Self::copy_of(template().path().join("data").as_path());
        server.options = settings.iter().map(|setting| (*setting).to_owned()).collect();
        server.run();
        server
    }

    /// Starts a standby with the name `name` that follows this server.
    #[must_use]
    pub fn start_standby(&self, name: &str, settings: &[&str]) -> Self {
        let mut standby = Self { folder: private_folder(), process: None, options: Vec::new() };
        let status = as_server_user(&programs().join("pg_basebackup"))
            .args(["--checkpoint=fast", "-U", "postgres", "-h"])
            .arg(self.socket_folder())
            .arg("-D")
            .arg(standby.data())
            .status()
            .unwrap();
        assert!(status.success(), "pg_basebackup: {status}");
        let signal = standby.data().join("standby.signal");
        std::fs::write(&signal, "").unwrap();
        standby.options = settings.iter().map(|setting| (*setting).to_owned()).collect();
        standby.options.push(format!(
            "primary_conninfo=host={} user=postgres application_name={name}",
            self.socket_folder().display()
        ));
        standby.run();
        standby
    }

    /// Returns the address of the database.
    pub fn address(&self) -> String {
        format!("postgres://postgres@{}/postgres", escape_path(self.socket_folder()))
    }

    /// Returns the folder with the server's Unix socket.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of the server's Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.socket_folder().join(".s.PGSQL.5432")
    }

    /// Runs SQL, and returns the rows as text.
    pub fn sql(&self, sql: &str) -> String {
        let output = self.psql(sql);
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Starts SQL in another process without waiting for it.
    pub fn spawn_sql(&self, sql: &str) -> Child {
        self.psql_command(sql).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Waits until the query returns this text.
    pub fn wait_for_sql(&self, sql: &str, expected: &str) {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let output = self.psql(sql);
            let found = String::from_utf8_lossy(&output.stdout);
            if output.status.success() && found.trim_end() == expected {
                return;
            }
            assert!(Instant::now() < deadline, "{sql}: {found:?} instead of {expected:?}");
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    /// Kills the server with SIGKILL, as a crash does.
    pub fn kill(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        process.kill().unwrap();
        process.wait().unwrap();
        // The server's other processes notice it a moment later. A new server waits until they have ended.
    }

    /// Starts the server again after [`kill`](Self::kill), with the same settings and some more.
    pub fn restart_with(&mut self, settings: &[&str]) {
        self.kill();
        self.options.extend(settings.iter().map(|setting| (*setting).to_owned()));
        self.run();
    }

    /// Starts the server again after [`kill`](Self::kill).
    pub fn restart(&mut self) {
        self.restart_with(&[]);
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        self.sql("SELECT pg_promote()");
    }

    fn psql(&self, sql: &str) -> std::process::Output {
        self.psql_command(sql).output().unwrap()
    }

    fn psql_command(&self, sql: &str) -> Command {
        let mut command = Command::new(programs().join("psql"));
        command.args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "postgres",
            "-d",
            "postgres",
            "-c",
            sql,
        ]);
        command.arg("-h").arg(self.socket_folder()).stdin(Stdio::null());
        command
    }

    fn copy_of(template: &Path) -> Self {
        let server = Self { folder: private_folder(), process: None, options: Vec::new() };
        let status =
            as_server_user(Path::new("cp")).arg("-a").arg(template).arg(server.data()).status().unwrap();
        assert!(status.success(), "cp: {status}");
        server
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn run(&mut self) {
        let deadline = Instant::now() + START_TIMEOUT;
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        loop {
            // A pid file of a killed server may say that it is ready.
            let pid_file = self.data().join("postmaster.pid");
            let _ = std::fs::remove_file(&pid_file);
            let mut command = as_server_user(&programs().join("postgres"));
            command.arg("-D").arg(self.data()).args(["-c", "listen_addresses=", "-c"]);
            command.arg(format!("unix_socket_directories={}", self.socket_folder().display()));
            for setting in &self.options {
                command.args(["-c", setting]);
            }
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.try_clone().unwrap());
            let mut process = command.spawn().unwrap();
            let is_ready = || {
                let text = std::fs::read_to_string(&pid_file).unwrap_or_default();
                text.lines().nth(7).is_some_and(|line| ["ready", "standby"].contains(&line.trim()))
            };
            while !is_ready() {
                assert!(Instant::now() < deadline, "Postgres does not start: {}", self.log());
                if process.try_wait().unwrap().is_some() {
                    break;
                }
                std::thread::sleep(RETRY_PAUSE);
            }
            // Processes of a killed server may still use its shared memory. Then the new one exits.
            if process.try_wait().unwrap().is_none() {
                self.process = Some(process);
                return;
            }
            assert!(Instant::now() < deadline, "Postgres does not start: {}", self.log());
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    /// Returns what the server has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // SIGQUIT also ends the server's other processes at once.
            let pid = rustix::process::Pid::from_child(process);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
            let _ = process.wait();
        }
    }
}

fn programs() -> PathBuf {
    find_programs().expect("Postgres is installed")
}

/// An initialized data folder, from which every server is copied.
fn template() -> &'static TempDir {
    static TEMPLATE: OnceLock<TempDir> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let folder = private_folder();
        let output = as_server_user(&programs().join("initdb"))
            .args([
                "-N",
                "-U",
                "postgres",
                "--auth=trust",
                "--locale=C",
                "-E",
                "UTF8",
                "--wal-segsize=1",
                "-D",
            ])
            .arg(folder.path().join("data"))
            .output()
            .unwrap();
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        folder
    })
}

/// Creates a temporary folder that belongs to the user that runs the server.
pub(crate) fn private_folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("sayso-pg-").tempdir().unwrap();
    if let Some((user, group)) = server_user() {
        chown(folder.path(), Some(user), Some(group)).unwrap();
        // The tests run as root, and other users cannot be among them.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

/// Returns the user that runs the server, or `None` for the current user. Postgres refuses to run as root.
pub(crate) fn server_user() -> Option<(u32, u32)> {
    static USER: OnceLock<Option<(u32, u32)>> = OnceLock::new();
    *USER.get_or_init(|| {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let id = |option: &str| {
            let output = Command::new("id").args([option, "postgres"]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).trim().parse::<u32>().expect("a user named postgres")
        };
        Some((id("-u"), id("-g")))
    })
}

/// Prepares a command that runs as the server's user and ends when this thread ends.
fn as_server_user(program: &Path) -> Command {
    as_server_user_until("QUIT", program)
}

/// Prepares a command that runs as the server's user and gets this signal when this thread ends.
pub(crate) fn as_server_user_until(signal: &str, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    if let Some((user, group)) = server_user() {
        command.args([&format!("--reuid={user}"), &format!("--regid={group}"), "--clear-groups"]);
    }
    command.args(["--pdeathsig", signal]).arg(program).current_dir("/");
    command
}

fn escape_path(path: &Path) -> String {
    let mut escaped = String::new();
    for byte in path.to_str().unwrap().bytes() {
        if byte.is_ascii_alphanumeric() {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}
