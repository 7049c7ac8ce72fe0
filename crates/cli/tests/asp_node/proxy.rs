//! A hostile network: a proxy that delays, duplicates, drops, cuts and records the requests to a node.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use testing::http::TIMEOUT;

/// The longest time that a held request waits for another one.
const MAX_HOLD: Duration = Duration::from_millis(200);

/// A fault of the network, applied to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The request arrives twice.
    Duplicate,
    /// The request is lost.
    DropRequest,
    /// The request arrives, but the response is lost.
    DropResponse,
    /// The request is cut in its body.
    CutRequest,
    /// The response is cut.
    CutResponse,
    /// Later requests arrive first.
    Hold,
    /// A WebSocket is cut after this many bytes from the client.
    CutSocket(usize),
}

type FaultSource = Box<dyn FnMut(&[u8]) -> Fault + Send>;

/// The proxy, which runs until the test ends.
pub(crate) struct Proxy {
    network: Arc<Network>,
}

struct Network {
    target: String,
    choose: Mutex<FaultSource>,
    requests: Mutex<Vec<Vec<u8>>>,
    /// The statuses of the responses to second copies.
    duplicate_statuses: Mutex<Vec<u16>>,
    forwarded: Mutex<usize>,
    has_forwarded: Condvar,
}

impl Proxy {
    /// Binds a proxy. It forwards nothing before [`Self::start`].
    pub(crate) fn bind() -> (TcpListener, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        (listener, address)
    }

    /// Forwards requests to `target`. `choose` decides the fault of each request.
    pub(crate) fn start(
        listener: TcpListener,
        target: &str,
        choose: impl FnMut(&[u8]) -> Fault + Send + 'static,
    ) -> Self {
        let network = Arc::new(Network {
            target: target.to_owned(),
            choose: Mutex::new(Box::new(choose)),
            requests: Mutex::default(),
            duplicate_statuses: Mutex::default(),
            forwarded: Mutex::default(),
            has_forwarded: Condvar::new(),
        });
        let proxy = Self { network: network.clone() };
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let network = network.clone();
                std::thread::spawn(move || network.serve(client));
            }
        });
        proxy
    }

    /// Returns all requests until now, as they arrived.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        self.network.requests.lock().unwrap().clone()
    }

    pub(crate) fn duplicate_statuses(&self) -> Vec<u16> {
        self.network.duplicate_statuses.lock().unwrap().clone()
    }
}

impl Network {
    /// Serves the requests of one connection, until a fault ends it.
    fn serve(&self, mut client: TcpStream) {
        client.set_read_timeout(Some(TIMEOUT)).unwrap();
        while let Some(request) = read_message(&mut client) {
            let fault = (self.choose.lock().unwrap())(&request);
            self.requests.lock().unwrap().push(request.clone());
            if is_upgrade(&request) {
                let limit = if let Fault::CutSocket(bytes) = fault { bytes } else { usize::MAX };
                self.tunnel(client, &request, limit);
                return;
            }
            if fault == Fault::Hold {
                self.wait_for_another();
            }
            let response = match fault {
                Fault::DropRequest => return,
                Fault::CutRequest => {
                    if let Ok(mut upstream) = TcpStream::connect(&self.target) {
                        let _ = upstream.write_all(&request[..request.len() - request.len() / 4]);
                    }
                    return;
                }
                _ => self.forward(&request),
            };
            if fault == Fault::Duplicate {
                self.duplicate_statuses
                    .lock()
                    .unwrap()
                    .extend(self.forward(&request).and_then(|r| status(&r)));
            }
            let Some(response) = response else { return };
            match fault {
                Fault::DropResponse => return,
                Fault::CutResponse => {
                    let _ = client.write_all(&response[..response.len() / 2]);
                    return;
                }
                _ => {
                    if client.write_all(&response).is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Sends a request on a connection of its own, and returns the response.
    fn forward(&self, request: &[u8]) -> Option<Vec<u8>> {
        let mut upstream = TcpStream::connect(&self.target).ok()?;
        upstream.set_read_timeout(Some(TIMEOUT)).unwrap();
        upstream.write_all(request).ok()?;
        let response = read_message(&mut upstream);
        *self.forwarded.lock().unwrap() += 1;
        self.has_forwarded.notify_all();
        response
    }

    fn wait_for_another(&self) {
        let forwarded = self.forwarded.lock().unwrap();
        let before = *forwarded;
        let is_same = |now: &mut usize| *now == before;
        drop(self.has_forwarded.wait_timeout_while(forwarded, MAX_HOLD, is_same).unwrap());
    }

    /// Copies the bytes of a WebSocket, and cuts it after this many bytes from the client.
    fn tunnel(&self, mut client: TcpStream, request: &[u8], limit: usize) {
        let Ok(mut upstream) = TcpStream::connect(&self.target) else { return };
        let _ = upstream.write_all(request);
        let (mut from_upstream, mut to_client) = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let _ = std::io::copy(&mut from_upstream, &mut to_client);
                let _ = to_client.shutdown(Shutdown::Both);
            });
            let mut limited = Read::take(&mut client, u64::try_from(limit).unwrap());
            let _ = std::io::copy(&mut limited, &mut upstream);
            let _ = upstream.shutdown(Shutdown::Both);
        });
    }
}

fn is_upgrade(request: &[u8]) -> bool {
    String::from_utf8_lossy(request).to_ascii_lowercase().contains("\r\nupgrade: websocket")
}

fn status(response: &[u8]) -> Option<u16> {
    String::from_utf8_lossy(response).split(' ').nth(1)?.parse().ok()
}

/// Reads a complete request or response.
pub(crate) fn read_message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    while !message.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        message.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&message).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    message.extend(body);
    Some(message)
}
