//! A proxy between two processes on TCP, which can be cut.

use std::io::copy;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Forwards connections to an address, until they are cut.
pub struct TcpLink {
    address: String,
    is_cut: Arc<AtomicBool>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

impl TcpLink {
    /// Starts a proxy for the server at this address.
    pub fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (is_cut, connections) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<TcpStream>>>::default());
        let (shared_cut, shared, server) = (is_cut.clone(), connections.clone(), server.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shared_cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(&server) else { continue };
                let clone = |stream: &TcpStream| stream.try_clone().unwrap();
                shared.lock().unwrap().extend([clone(&client), clone(&server)]);
                let (from_client, to_server) = (clone(&client), clone(&server));
                thread::spawn(move || forward(&from_client, &to_server));
                thread::spawn(move || forward(&server, &client));
            }
        });
        Self { address, is_cut, connections }
    }

    /// Returns the address of the proxy.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Cuts all connections and refuses new ones.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        for connection in self.connections.lock().unwrap().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Forwards new connections again.
    pub fn restore(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

fn forward(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = copy(&mut from, &mut to);
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
