//! The server that the fan-out benchmark compares the hub with: nginx with nchan, one worker, all files in a temporary folder.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{KeepAliveClient, ProcessStats, Server, enveloped_uncoalescable_event};

/// A running nginx with nchan. Dropping this stops it.
#[derive(Debug)]
pub struct Nchan {
    child: Child,
    address: String,
    worker: ProcessStats,
    _folder: TempDir,
}

const MODULE: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";

impl Nchan {
    /// Starts nginx on a free loopback port. Returns the reason if that fails.
    pub fn start() -> Result<Self, String> {
        if !Path::new(MODULE).exists() {
            return Err("nginx with nchan is not installed (Debian: nginx, libnginx-mod-nchan)".to_owned());
        }
        let folder =
            tempfile::Builder::new().prefix("sayso-nchan-").tempdir().map_err(|error| error.to_string())?;
        let free_address = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let address = free_address.map_err(|error| error.to_string())?.to_string();
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, nginx_config(folder.path(), &address)).map_err(|error| error.to_string())?;
        let mut child = Command::new("nginx")
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(&file)
            .args(["-e", "stderr"])
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot run nginx: {error}"))?;
        let started = Instant::now();
        while TcpStream::connect(&address).is_err() {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("nginx exited with {status}"));
            }
            if started.elapsed() > Duration::from_secs(10) {
                let _ = child.kill();
                let _ = child.wait();
                return Err("nginx did not start listening within ten seconds".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let worker = ProcessStats(child.id()).only_child().unwrap_or(ProcessStats(child.id()));
        Ok(Self { child, address, worker, _folder: folder })
    }
}

fn nginx_config(folder: &Path, address: &str) -> String {
    let folder = folder.display();
    // As root, the worker would switch to a user who cannot write here.
    let user = if std::env::var("USER").is_ok_and(|user| user != "root") { "" } else { "user root;" };
    format!(
        "load_module {MODULE};
{user}
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid {folder}/pid;
error_log stderr error;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    tcp_nodelay on;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    nchan_shared_memory_size 256m;
    nchan_message_buffer_length 10000;
    server {{
        listen {address} backlog=4096;
        location = /pub {{ nchan_publisher http; nchan_channel_id bench; }}
        location = /sub {{ nchan_subscriber eventsource; nchan_channel_id bench; nchan_subscriber_first_message newest; }}
    }}
}}
"
    )
}

impl Server for Nchan {
    fn address(&self) -> &str {
        &self.address
    }

    fn subscribe_and_get_stream_path(&self, _: &mut KeepAliveClient) -> String {
        "/sub".to_owned()
    }

    /// nchan has no batches, so this is a sequence of single requests.
    fn publish_request(&self, batch: usize) -> (Vec<u8>, usize) {
        (
            KeepAliveClient::request(&self.address, "POST", "/pub", &enveloped_uncoalescable_event())
                .repeat(batch),
            batch,
        )
    }

    fn process(&self) -> ProcessStats {
        self.worker
    }
}

impl Drop for Nchan {
    fn drop(&mut self) {
        // SIGTERM, so that nginx stops its worker too.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let _ = self.child.wait();
    }
}
