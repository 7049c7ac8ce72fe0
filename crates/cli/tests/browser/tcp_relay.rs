//! A TCP relay to the hub that can be disconnected while both ends keep running.

use std::io::copy;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

/// The address of the hub while the relay is connected, and its open connections.
#[derive(Default)]
struct RelayState {
    hub: Option<String>,
    connections: Vec<TcpStream>,
}

pub(crate) struct TcpRelay {
    pub(crate) address: String,
    state: Arc<Mutex<RelayState>>,
}

impl TcpRelay {
    /// Starts a relay that is not connected to a hub yet.
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(RelayState::default()));
        let thread_state = Arc::clone(&state);
        spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let mut state = thread_state.lock().unwrap();
                // Dropping the stream closes it.
                let Some(hub) = &state.hub else { continue };
                let Ok(server) = TcpStream::connect(hub) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    spawn(move || {
                        let _ = copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                state.connections.extend([client, server]);
            }
        });
        Self { address, state }
    }

    pub(crate) fn connect_to(&self, hub: &str) {
        self.state.lock().unwrap().hub = Some(hub.to_owned());
    }

    pub(crate) fn disconnect(&self) {
        let mut state = self.state.lock().unwrap();
        state.hub = None;
        for stream in state.connections.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
