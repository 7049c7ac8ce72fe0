//! A proxy between a journal and its Postgres server, on a Unix socket.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

use crate::stall::Stall;

/// Forwards connections to a server. It can withhold the server's answers, stall, refuse connections, and cut all of them.
pub struct Proxy {
    folder: TempDir,
    state: Arc<State>,
    /// Receives a message when an answer was withheld.
    withheld: Receiver<()>,
}

struct State {
    server: Mutex<PathBuf>,
    withholds_answers: AtomicBool,
    refuses_connections: AtomicBool,
    stall: Stall,
    connections: Mutex<Vec<UnixStream>>,
    withheld: Mutex<Sender<()>>,
}

impl Proxy {
    /// Starts a proxy for the server with this socket.
    pub fn start(server: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let (sender, withheld) = channel();
        let state = Arc::new(State {
            server: Mutex::new(server.to_owned()),
            withholds_answers: AtomicBool::new(false),
            refuses_connections: AtomicBool::new(false),
            stall: Stall::default(),
            connections: Mutex::default(),
            withheld: Mutex::new(sender),
        });
        let shared = state.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                shared.forward(client);
            }
        });
        Self { folder, state, withheld }
    }

    /// Returns the address of the database through the proxy.
    pub fn address(&self) -> String {
        let path = self.folder.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://postgres@{path}/postgres")
    }

    /// Withholds every answer from the server from now on, on the present connections. Requests still arrive.
    pub fn withhold_answers(&self) {
        while self.withheld.try_recv().is_ok() {}
        self.state.withholds_answers.store(true, Ordering::SeqCst);
    }

    /// Waits until the server has sent an answer that was withheld.
    pub fn wait_until_withheld(&self) {
        self.withheld.recv().unwrap();
    }

    /// Holds back what both sides send from now on, also on new connections. Connections stay open.
    pub fn stall(&self) {
        self.state.stall.begin();
    }

    /// Forwards what was held back. So a request can arrive long after its sender has given it up.
    pub fn end_stall(&self) {
        self.state.stall.end();
    }

    /// Cuts all connections and forwards new ones again.
    pub fn cut(&self) {
        self.state.withholds_answers.store(false, Ordering::SeqCst);
        for connection in self.state.connections.lock().unwrap().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Refuses new connections, or accepts them again.
    pub fn refuse_connections(&self, refuses: bool) {
        self.state.refuses_connections.store(refuses, Ordering::SeqCst);
    }

    /// Forwards new connections to another server.
    pub fn redirect(&self, server: &Path) {
        server.clone_into(&mut self.state.server.lock().unwrap());
    }
}

impl State {
    fn forward(self: &Arc<Self>, client: UnixStream) {
        if self.refuses_connections.load(Ordering::SeqCst) {
            return;
        }
        let Ok(server) = UnixStream::connect(&*self.server.lock().unwrap()) else { return };
        let clone = |stream: &UnixStream| stream.try_clone().unwrap();
        self.connections.lock().unwrap().extend([clone(&client), clone(&server)]);
        let (from_client, to_server) = (clone(&client), clone(&server));
        let state = self.clone();
        thread::spawn(move || {
            copy(from_client, to_server, |_| {
                state.stall.wait_until_over();
                true
            });
        });
        let state = self.clone();
        thread::spawn(move || {
            copy(server, client, |_| {
                state.stall.wait_until_over();
                let withholds = state.withholds_answers.load(Ordering::SeqCst);
                if withholds {
                    let _ = state.withheld.lock().unwrap().send(());
                }
                !withholds
            });
        });
    }
}

/// Copies bytes until one side closes. Drops what `passes` refuses.
fn copy(mut from: UnixStream, mut to: UnixStream, passes: impl Fn(&[u8]) -> bool) {
    let mut buffer = vec![0; 65536];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if passes(&buffer[..length]) && to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
