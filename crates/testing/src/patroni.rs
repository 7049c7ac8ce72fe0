//! A database cluster as operators run it: etcd and two servers that Patroni manages, without a system service.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::hub::reserved_address;
use crate::postgres::{as_server_user_until, find_programs, private_folder, server_user};

const START_TIMEOUT: Duration = Duration::from_mins(1);
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Returns which of the needed programs is missing, if one is.
pub fn missing_program() -> Option<&'static str> {
    if find_programs().is_none() {
        return Some("Postgres");
    }
    let is_missing = |program: &&str| {
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        !command.status().is_ok_and(|status| status.success())
    };
    ["patroni", "etcd"].into_iter().find(|program| is_missing(program))
}

/// etcd and two servers. Dropping it ends all processes and deletes the data.
pub struct PatroniCluster {
    servers: Vec<ManagedServer>,
    etcd: Child,
    folder: TempDir,
}

/// A Postgres server and the Patroni process that manages it.
struct ManagedServer {
    name: &'static str,
    address: String,
    rest_api: String,
    patroni: Option<Child>,
}

impl ManagedServer {
    fn is_synchronous_standby(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(&self.rest_api) else { return false };
        let mut response = String::new();
        stream.set_read_timeout(Some(START_TIMEOUT)).unwrap();
        stream.write_all(b"GET /sync HTTP/1.0\r\n\r\n").is_ok()
            && stream.read_to_string(&mut response).is_ok()
            && response.split(' ').nth(1) == Some("200")
    }
}

impl PatroniCluster {
    /// Starts a cluster, and waits until the primary has a synchronous standby.
    pub fn start() -> Self {
        let folder = private_folder();
        let [client, peer] =
            [reserved_address(), reserved_address()].map(|address| format!("http://{address}"));
        let mut etcd = as_server_user_until("TERM", Path::new("etcd"));
        etcd.args(["--name", "etcd", "--initial-cluster", &format!("etcd={peer}"), "--data-dir"]);
        etcd.arg(folder.path().join("etcd"));
        etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        etcd.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        let log = File::create(folder.path().join("etcd.log")).unwrap();
        let etcd = etcd.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let servers = ["a", "b"].map(|name| {
            let (address, rest_api) = (reserved_address(), reserved_address());
            ManagedServer { name, address, rest_api, patroni: None }
        });
        let mut cluster = Self { servers: servers.into(), etcd, folder };
        for index in 0..2 {
            cluster.write_configuration(index, client.trim_start_matches("http://"));
            cluster.run(index);
        }
        cluster.wait_for_standby();
        cluster
    }

    /// Returns the address of a database with both hosts.
    pub fn address(&self, user: &str, database: &str) -> String {
        let hosts: Vec<_> = self.servers.iter().map(|server| server.address.as_str()).collect();
        format!("postgres://{user}@{}/{database}", hosts.join(","))
    }

    /// Runs SQL in a database of the primary, and returns the rows as text. `None` if there is no primary.
    pub fn try_sql(&self, database: &str, sql: &str) -> Option<String> {
        let address = format!("{}?target_session_attrs=read-write", self.address("postgres", database));
        let mut psql = Command::new(find_programs()?.join("psql"));
        psql.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql, &address]);
        let output = psql.env("PGCONNECT_TIMEOUT", "5").stdin(Stdio::null()).output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Waits until Patroni names a standby that has every commit. It promotes no other standby.
    pub fn wait_for_standby(&self) {
        let deadline = Instant::now() + START_TIMEOUT;
        while !self.servers.iter().any(ManagedServer::is_synchronous_standby) {
            assert!(Instant::now() < deadline, "there is no synchronous standby: {}", self.logs());
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    /// Kills Patroni and the server of the primary with SIGKILL, as the loss of a machine does. Returns the index of the
    /// server.
    pub fn kill_primary(&mut self) -> usize {
        let port = self.try_sql("postgres", "SHOW port").expect("a primary");
        let is_primary = |server: &ManagedServer| server.address.ends_with(&format!(":{port}"));
        let primary = self.servers.iter().position(is_primary).unwrap();
        self.kill(primary);
        primary
    }

    /// Starts Patroni again, as the system does when the machine is back. It makes the server a standby.
    pub fn run(&mut self, index: usize) {
        let server = &mut self.servers[index];
        let log = self.folder.path().join(format!("{}.log", server.name));
        let log = File::options().append(true).create(true).open(log).unwrap();
        // SIGTERM makes Patroni stop its server, too.
        let mut patroni = as_server_user_until("TERM", Path::new("patroni"));
        patroni.arg(self.folder.path().join(format!("{}.yml", server.name)));
        patroni.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        server.patroni = Some(patroni.spawn().unwrap());
    }

    /// Returns what Patroni has logged.
    pub fn logs(&self) -> String {
        let read = |server: &ManagedServer| {
            let path = self.folder.path().join(format!("{}.log", server.name));
            format!("\n{}:\n{}", server.name, std::fs::read_to_string(path).unwrap_or_default())
        };
        self.servers.iter().map(read).collect()
    }

    fn data(&self, index: usize) -> PathBuf {
        self.folder.path().join(self.servers[index].name)
    }

    /// Kills Patroni first, because it would start the server again.
    fn kill(&mut self, index: usize) {
        if let Some(mut patroni) = self.servers[index].patroni.take() {
            let _ = patroni.kill();
            let _ = patroni.wait();
        }
        let data = self.data(index);
        let Ok(pid_file) = std::fs::read_to_string(data.join("postmaster.pid")) else { return };
        let pid = pid_file.lines().next().and_then(|line| line.trim().parse().ok());
        let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else { return };
        // The file of a server that was killed may name the process of another program.
        let folder = std::fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero()));
        if folder.is_ok_and(|folder| folder == data) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }

    fn write_configuration(&self, index: usize, etcd: &str) {
        let ManagedServer { name, address, rest_api, .. } = &self.servers[index];
        let folder = self.folder.path().display();
        let programs = find_programs().unwrap();
        let text = format!(
            r#"scope: sayso
name: {name}
restapi: {{listen: "{rest_api}", connect_address: "{rest_api}"}}
etcd3: {{host: "{etcd}"}}
bootstrap:
  dcs:
    ttl: 5
    loop_wait: 1
    retry_timeout: 2
    primary_start_timeout: 0
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql: {{use_pg_rewind: true, remove_data_directory_on_rewind_failure: true}}
  initdb: [{{encoding: UTF8}}, {{locale: C}}, {{auth: trust}}, {{wal-segsize: "1"}}, no-sync]
postgresql:
  listen: "{address}"
  connect_address: "{address}"
  data_dir: {folder}/{name}
  bin_dir: {}
  pgpass: {folder}/{name}.pgpass
  authentication:
    superuser: {{username: postgres, password: secret}}
    replication: {{username: replicator, password: secret}}
  parameters: {{unix_socket_directories: "{folder}"}}
  pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
"#,
            programs.display()
        );
        let path = self.folder.path().join(format!("{name}.yml"));
        std::fs::write(&path, text).unwrap();
        if let Some((user, group)) = server_user() {
            chown(&path, Some(user), Some(group)).unwrap();
        }
    }
}

impl Drop for PatroniCluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("logs of Patroni: {}", self.logs());
        }
        for index in 0..self.servers.len() {
            self.kill(index);
        }
        let _ = self.etcd.kill();
        let _ = self.etcd.wait();
    }
}
