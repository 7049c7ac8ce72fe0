//! A proxy between two processes on TCP, which can be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::stall::Stall;

/// Forwards connections to an address, until they are cut or stall.
pub struct TcpLink {
    address: String,
    is_cut: Arc<AtomicBool>,
    stall: Arc<Stall>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

impl TcpLink {
    /// Starts a proxy for the server at this address.
    pub fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (is_cut, connections) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<TcpStream>>>::default());
        let (shared_cut, shared, server) = (is_cut.clone(), connections.clone(), server.to_owned());
        let stall = Arc::<Stall>::default();
        let shared_stall = stall.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shared_cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(&server) else { continue };
                let clone = |stream: &TcpStream| stream.try_clone().unwrap();
                shared.lock().unwrap().extend([clone(&client), clone(&server)]);
                let (from_client, to_server) = (clone(&client), clone(&server));
                let (stall, other_stall) = (shared_stall.clone(), shared_stall.clone());
                thread::spawn(move || forward(&from_client, &to_server, &stall));
                thread::spawn(move || forward(&server, &client, &other_stall));
            }
        });
        Self { address, is_cut, stall, connections }
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

    /// Holds everything back that arrives from now on, as a network that drops packets does. Connections stay open.
    pub fn stall(&self) {
        self.stall.begin();
    }

    /// Forwards new connections again, and what was held back.
    pub fn restore(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
        self.stall.end();
    }
}

fn forward(mut from: &TcpStream, mut to: &TcpStream, stall: &Stall) {
    let mut buffer = vec![0; 65536];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        stall.wait_until_over();
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
