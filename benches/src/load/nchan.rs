//! The peer for fan-out: nginx with nchan, one worker, everything in a folder of its own.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Agent, Process, Server, whole};

/// nginx with nchan, until it is dropped.
#[derive(Debug)]
pub struct Nchan {
    child: Child,
    address: String,
    worker: Process,
    _folder: TempDir,
}

const MODULE: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";

impl Nchan {
    /// Starts it on a free port of loopback; says why if it cannot.
    pub fn start() -> Result<Self, String> {
        if !Path::new(MODULE).exists() {
            return Err("nginx with nchan is not installed (Debian: nginx, libnginx-mod-nchan)".to_owned());
        }
        let folder =
            tempfile::Builder::new().prefix("sayso-nchan-").tempdir().map_err(|why| why.to_string())?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let address = free.map_err(|why| why.to_string())?.to_string();
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, settings(folder.path(), &address)).map_err(|why| why.to_string())?;
        let mut child = Command::new("nginx")
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(&file)
            .args(["-e", "stderr"])
            .stdin(Stdio::null())
            .spawn()
            .map_err(|why| format!("nginx could not be run: {why}"))?;
        let begun = Instant::now();
        while TcpStream::connect(&address).is_err() {
            if let Ok(Some(ended)) = child.try_wait() {
                return Err(format!("nginx ended with {ended}"));
            }
            if begun.elapsed() > Duration::from_secs(10) {
                let _ = child.kill();
                let _ = child.wait();
                return Err("nginx does not listen".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let worker = Process(child.id()).child().unwrap_or(Process(child.id()));
        Ok(Self { child, address, worker, _folder: folder })
    }
}

fn settings(folder: &Path, address: &str) -> String {
    let folder = folder.display();
    // As root the worker would change to a user who cannot write here.
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

    fn stream(&self, _: &mut Agent) -> String {
        "/sub".to_owned()
    }

    /// It knows no batches: as many requests in a row.
    fn request(&self, batch: usize) -> (Vec<u8>, usize) {
        (Agent::request(&self.address, "POST", "/pub", &whole()).repeat(batch), batch)
    }

    fn process(&self) -> Process {
        self.worker
    }
}

impl Drop for Nchan {
    fn drop(&mut self) {
        // Asked, so that it ends its worker too.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let _ = self.child.wait();
    }
}
