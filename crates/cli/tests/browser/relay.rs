//! A line to the hub that can be cut while both ends go on.

use std::io::copy;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

/// What holds now: the hub's address while the line is whole, and all that goes over it.
#[derive(Default)]
struct Wires {
    hub: Option<String>,
    open: Vec<TcpStream>,
}

pub(crate) struct Relay {
    pub(crate) address: String,
    wires: Arc<Mutex<Wires>>,
}

impl Relay {
    /// It has an address, and leads nowhere yet.
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let wires = Arc::new(Mutex::new(Wires::default()));
        let held = Arc::clone(&wires);
        spawn(move || {
            for here in listener.incoming().map_while(Result::ok) {
                let mut wires = held.lock().unwrap();
                // Dropped, it is hung up on.
                let Some(hub) = &wires.hub else { continue };
                let Ok(there) = TcpStream::connect(hub) else { continue };
                for (from, to) in [(&here, &there), (&there, &here)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    spawn(move || {
                        let _ = copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                wires.open.extend([here, there]);
            }
        });
        Self { address, wires }
    }

    pub(crate) fn join(&self, hub: &str) {
        self.wires.lock().unwrap().hub = Some(hub.to_owned());
    }

    pub(crate) fn cut(&self) {
        let mut wires = self.wires.lock().unwrap();
        wires.hub = None;
        for stream in wires.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
