//! A client of BrlAPI, the protocol through which brltty shares a braille display with other programs.
//!
//! A packet has a size and a type, each a big-endian number of four bytes, and a payload. The server sends its version and the
//! methods of authorization that it accepts. The client then takes a tty, writes text, and receives keys.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::reader::{DisplayKey, DisplaySize};

const PROTOCOL_VERSION: u32 = 8;
/// Maximum size of a packet's payload in bytes. The protocol has the same limit.
const MAX_PACKET_BYTES: usize = 4096;
/// Maximum number of cells of a display. The text of a write packet must fit into a packet.
const MAX_CELLS: usize = 960;
/// Maximum number of received packets that wait. Further packets stay in the socket.
const PACKET_QUEUE: usize = 64;
/// How long brltty may take to accept a connection, or to respond.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// TCP port of the server with the number 0.
const FIRST_PORT: u16 = 4101;
#[cfg(unix)]
const SOCKET_FOLDER: &str = "/var/lib/BrlAPI";
/// The file that contains the key, unless `BRLAPI_AUTH` names another one.
const DEFAULT_KEY_FILE: &str = "/etc/brlapi.key";

const VERSION: u32 = b'v' as u32;
const AUTHORIZATION: u32 = b'a' as u32;
const DISPLAY_SIZE: u32 = b's' as u32;
const ENTER_TTY: u32 = b't' as u32;
const IGNORE_KEYS: u32 = b'm' as u32;
const ACCEPT_KEYS: u32 = b'u' as u32;
const WRITE: u32 = b'w' as u32;
const KEY: u32 = b'k' as u32;
const ACKNOWLEDGEMENT: u32 = b'A' as u32;
const ERROR: u32 = b'e' as u32;
const EXCEPTION: u32 = b'E' as u32;

const AUTHORIZED: u32 = b'N' as u32;
const KEY_REQUIRED: u32 = b'K' as u32;

const WRITE_REGION: u32 = 0x02;
const WRITE_TEXT: u32 = 0x04;
const WRITE_CURSOR: u32 = 0x20;
const WRITE_CHARSET: u32 = 0x40;
const CHARSET: &[u8] = b"UTF-8";

/// brltty's commands, as key codes.
const COMMAND: u64 = 0x2000_0000;
const LINE_UP: u64 = COMMAND + 1;
const LINE_DOWN: u64 = COMMAND + 2;
const WINDOW_LEFT: u64 = COMMAND + 23;
const WINDOW_RIGHT: u64 = COMMAND + 24;
const ROUTE: u64 = COMMAND + 0x1_0000;
const LAST_ROUTE: u64 = ROUTE + 0xffff;

/// The keys that this client takes. brltty handles all others, so that typing on a braille keyboard works as usual.
const ACCEPTED_KEYS: [(u64, u64); 3] =
    [(LINE_UP, LINE_DOWN), (WINDOW_LEFT, WINDOW_RIGHT), (ROUTE, LAST_ROUTE)];

/// The address of a BrlAPI server: `HOST:N`, or `:N` for this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrlapiAddress {
    host: String,
    number: u16,
}

impl BrlapiAddress {
    /// Parses an address. `N` is 0 if it is missing.
    ///
    /// ```
    /// use listen::braille::BrlapiAddress;
    /// assert_eq!(BrlapiAddress::parse("127.0.0.1:7").map(|address| address.to_string()), Some("127.0.0.1:7".to_owned()));
    /// assert_eq!(BrlapiAddress::parse(""), BrlapiAddress::parse(":0"));
    /// assert_eq!(BrlapiAddress::parse("http://127.0.0.1:7"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let (host, number) = match text.rsplit_once(':') {
            Some((host, number)) => (host, number.parse().ok()?),
            None => (text, 0),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_plausible = !host.contains(['/', '[', ']', ' ']) && number <= u16::MAX - FIRST_PORT;
        is_plausible.then(|| Self { host: host.to_owned(), number })
    }
}

impl std::fmt::Display for BrlapiAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "[{}]:{}", self.host, self.number)
        } else {
            write!(formatter, "{}:{}", self.host, self.number)
        }
    }
}

/// Why there is no connection to brltty.
#[derive(Debug, thiserror::Error)]
pub(super) enum BrlapiError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("no response")]
    Timeout,
    #[error("the connection was closed")]
    Closed,
    #[error("the response is not BrlAPI")]
    Malformed,
    #[error("BrlAPI version {0} is not supported")]
    Version(u32),
    /// The key file cannot be read, or brltty refuses the key.
    #[error("not authorized with the key file {}", .0.display())]
    Unauthorized(PathBuf),
    #[error("BrlAPI error {0}")]
    Refused(u32),
}

struct Packet {
    kind: u32,
    payload: Vec<u8>,
}

/// A connection to brltty.
pub(super) struct BrlapiConnection {
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    packets: mpsc::Receiver<Result<Packet, BrlapiError>>,
    read_task: JoinHandle<()>,
}

impl Drop for BrlapiConnection {
    fn drop(&mut self) {
        self.read_task.abort();
    }
}

impl BrlapiConnection {
    /// Connects, and authorizes with the key file if the server requires a key.
    pub(super) async fn open(address: &BrlapiAddress, key_file: &Path) -> Result<Self, BrlapiError> {
        let (reader, writer) =
            timeout(RESPONSE_TIMEOUT, connect(address)).await.map_err(|_| BrlapiError::Timeout)??;
        let (sender, packets) = mpsc::channel(PACKET_QUEUE);
        let read_task = tokio::spawn(read_packets(reader, sender));
        let mut connection = Self { writer, packets, read_task };
        let version = first_number(&connection.expect(VERSION).await?)?;
        if version < PROTOCOL_VERSION {
            return Err(BrlapiError::Version(version));
        }
        connection.send(VERSION, &PROTOCOL_VERSION.to_be_bytes()).await?;
        let methods = connection.expect(AUTHORIZATION).await?;
        let offers = |method: u32| methods.chunks_exact(4).any(|bytes| bytes == method.to_be_bytes());
        if offers(AUTHORIZED) {
            return Ok(connection);
        }
        let unauthorized = || BrlapiError::Unauthorized(key_file.to_owned());
        if !offers(KEY_REQUIRED) {
            return Err(unauthorized());
        }
        let key = std::fs::read(key_file).map_err(|_| unauthorized())?;
        if key.len() > MAX_PACKET_BYTES - 4 {
            return Err(unauthorized());
        }
        connection.send(AUTHORIZATION, &[&KEY_REQUIRED.to_be_bytes(), key.as_slice()].concat()).await?;
        connection.expect(ACKNOWLEDGEMENT).await.map_err(|error| match error {
            BrlapiError::Refused(_) => unauthorized(),
            error => error,
        })?;
        Ok(connection)
    }

    /// Returns the size of the display, or `None` if brltty has no display now.
    pub(super) async fn display_size(&mut self) -> Result<Option<DisplaySize>, BrlapiError> {
        self.send(DISPLAY_SIZE, &[]).await?;
        let payload = self.expect(DISPLAY_SIZE).await?;
        let columns = usize::try_from(first_number(&payload)?).unwrap_or(MAX_CELLS);
        let rows = usize::try_from(first_number(payload.get(4..).unwrap_or_default())?).unwrap_or(MAX_CELLS);
        if columns == 0 || rows == 0 {
            return Ok(None);
        }
        let columns = columns.min(MAX_CELLS);
        Ok(Some(DisplaySize { columns, rows: rows.min(MAX_CELLS / columns) }))
    }

    /// Takes the display while the tty with this path has the focus. The empty path means every tty.
    pub(super) async fn enter_tty(&mut self, path: &[u32]) -> Result<(), BrlapiError> {
        let count = u32::try_from(path.len()).unwrap_or(0);
        let mut payload: Vec<u8> = count.to_be_bytes().to_vec();
        payload.extend(path.iter().flat_map(|tty| tty.to_be_bytes()));
        // An empty driver name requests brltty's commands instead of the device's own key codes.
        payload.push(0);
        self.send(ENTER_TTY, &payload).await?;
        self.expect(ACKNOWLEDGEMENT).await?;
        self.send(IGNORE_KEYS, &[0_u64.to_be_bytes(), u64::MAX.to_be_bytes()].concat()).await?;
        self.expect(ACKNOWLEDGEMENT).await?;
        let ranges: Vec<u8> = ACCEPTED_KEYS
            .iter()
            .flat_map(|(first, last)| [first.to_be_bytes(), last.to_be_bytes()].concat())
            .collect();
        self.send(ACCEPT_KEYS, &ranges).await?;
        self.expect(ACKNOWLEDGEMENT).await?;
        Ok(())
    }

    /// Shows a text that has one character for each cell of the display.
    pub(super) async fn write(&mut self, text: &str) -> Result<(), BrlapiError> {
        let cells = u32::try_from(text.chars().count()).unwrap_or(0);
        let bytes = u32::try_from(text.len()).unwrap_or(0);
        let flags = WRITE_REGION | WRITE_TEXT | WRITE_CURSOR | WRITE_CHARSET;
        let mut payload = Vec::with_capacity(text.len() + 32);
        // The region starts at cell 1. Cursor 0 means that there is none.
        for number in [flags, 1, cells, bytes] {
            payload.extend(number.to_be_bytes());
        }
        payload.extend(text.as_bytes());
        payload.extend(0_u32.to_be_bytes());
        payload.push(u8::try_from(CHARSET.len()).unwrap_or(0));
        payload.extend(CHARSET);
        self.send(WRITE, &payload).await
    }

    /// Waits for the next key that has a meaning here. It is safe to drop the future.
    pub(super) async fn next_key(&mut self) -> Result<DisplayKey, BrlapiError> {
        loop {
            let packet = self.packets.recv().await.unwrap_or(Err(BrlapiError::Closed))?;
            match packet.kind {
                KEY => {
                    if let Some(key) = parse_key(&packet.payload) {
                        return Ok(key);
                    }
                }
                ERROR | EXCEPTION => return Err(BrlapiError::Refused(first_number(&packet.payload)?)),
                _ => {}
            }
        }
    }

    async fn send(&mut self, kind: u32, payload: &[u8]) -> Result<(), BrlapiError> {
        let size = u32::try_from(payload.len()).map_err(|_| BrlapiError::Malformed)?;
        let packet = [&size.to_be_bytes(), &kind.to_be_bytes(), payload].concat();
        let write = async {
            self.writer.write_all(&packet).await?;
            self.writer.flush().await
        };
        Ok(timeout(RESPONSE_TIMEOUT, write).await.map_err(|_| BrlapiError::Timeout)??)
    }

    /// Waits for a packet of this kind. Keys that were pressed before are ignored.
    async fn expect(&mut self, kind: u32) -> Result<Vec<u8>, BrlapiError> {
        let receive = async {
            loop {
                let packet = self.packets.recv().await.unwrap_or(Err(BrlapiError::Closed))?;
                match packet.kind {
                    received if received == kind => return Ok(packet.payload),
                    ERROR | EXCEPTION => return Err(BrlapiError::Refused(first_number(&packet.payload)?)),
                    KEY => {}
                    _ => return Err(BrlapiError::Malformed),
                }
            }
        };
        timeout(RESPONSE_TIMEOUT, receive).await.map_err(|_| BrlapiError::Timeout)?
    }
}

/// Returns the key file: the one that `BRLAPI_AUTH` names, as brltty's own clients do, or the default.
pub(super) fn key_file(variable: Option<&str>) -> PathBuf {
    let named = variable.unwrap_or_default().split('+').find_map(|part| {
        let path = part.strip_prefix("keyfile:").unwrap_or(part);
        path.starts_with('/').then(|| PathBuf::from(path))
    });
    named.unwrap_or_else(|| DEFAULT_KEY_FILE.into())
}

/// Returns the path of the tty that this program runs in, as brltty's own clients do. It is empty if the tty is unknown.
pub(super) fn tty_path(variable: impl Fn(&str) -> Option<String>, stdin: Option<&Path>) -> Vec<u32> {
    let number = |name: &str| variable(name).and_then(|value| value.parse::<u32>().ok());
    let is_graphical = variable("DISPLAY").is_some() || variable("WAYLAND_DISPLAY").is_some();
    let mut path: Vec<u32> = match variable("WINDOWPATH") {
        Some(path) => path.split(':').filter_map(|tty| tty.parse().ok()).collect(),
        None => number("XDG_VTNR").filter(|_| is_graphical).into_iter().collect(),
    };
    let console = || stdin?.to_str()?.strip_prefix("/dev/tty")?.parse().ok();
    path.extend(number("WINDOWID").or_else(|| number("CONTROLVT")).or_else(console));
    path
}

type Streams = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

async fn connect(address: &BrlapiAddress) -> Result<Streams, io::Error> {
    #[cfg(unix)]
    if address.host.is_empty()
        && let Ok(stream) =
            UnixStream::connect(Path::new(SOCKET_FOLDER).join(address.number.to_string())).await
    {
        let (reader, writer) = stream.into_split();
        return Ok((Box::new(reader), Box::new(writer)));
    }
    let host = if address.host.is_empty() { "127.0.0.1" } else { &address.host };
    let stream = TcpStream::connect((host, FIRST_PORT.saturating_add(address.number))).await?;
    stream.set_nodelay(true)?;
    let (reader, writer) = stream.into_split();
    Ok((Box::new(reader), Box::new(writer)))
}

async fn read_packets(
    mut reader: Box<dyn AsyncRead + Send + Unpin>,
    packets: mpsc::Sender<Result<Packet, BrlapiError>>,
) {
    loop {
        let packet = read_packet(&mut reader).await;
        let is_over = packet.is_err();
        if packets.send(packet).await.is_err() || is_over {
            return;
        }
    }
}

async fn read_packet(reader: &mut (dyn AsyncRead + Send + Unpin)) -> Result<Packet, BrlapiError> {
    let size = reader.read_u32().await.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => BrlapiError::Closed,
        _ => BrlapiError::Io(error),
    })?;
    let kind = reader.read_u32().await?;
    let size = usize::try_from(size).ok().filter(|size| *size <= MAX_PACKET_BYTES);
    let mut payload = vec![0; size.ok_or(BrlapiError::Malformed)?];
    reader.read_exact(&mut payload).await?;
    Ok(Packet { kind, payload })
}

fn first_number(payload: &[u8]) -> Result<u32, BrlapiError> {
    payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)).ok_or(BrlapiError::Malformed)
}

fn parse_key(payload: &[u8]) -> Option<DisplayKey> {
    match u64::from_be_bytes(*payload.first_chunk()?) {
        LINE_DOWN | WINDOW_RIGHT => Some(DisplayKey::Forward),
        LINE_UP | WINDOW_LEFT => Some(DisplayKey::Back),
        code @ ROUTE..=LAST_ROUTE => Some(DisplayKey::Route(usize::try_from(code - ROUTE).ok()?)),
        _ => None,
    }
}
