//! A recording served to listeners, each of whom hears it from its start.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aaep::Received;
use aaep::event::Event;
use tokio::net::TcpListener;
use wire::replay::{Events, Limits, Recording, Replay};

use super::pace::Speed;
use crate::print::{in_words, tell};
use crate::validate::items::Items;
use crate::way::{runtime, socket, stopped};

pub(super) fn run(path: &Path, address: &str, speed: Speed) -> Result<(), String> {
    let bad = || format!("{address:?} is no address to listen on: write 127.0.0.1:8787, or port 0 for any");
    let address: SocketAddr = socket(address).ok_or_else(bad)?;
    if !address.ip().is_loopback() {
        return Err("a recording is given to everybody who asks, so --listen is for loopback only".to_owned());
    }
    if path.as_os_str() == "-" {
        return Err("every listener hears the recording from its start, so --listen needs a file".to_owned());
    }
    let events = check(path)?;
    let runtime = runtime(2)?;
    let path = path.to_owned();
    let served = runtime.block_on(async move {
        let stopped = stopped();
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| format!("cannot listen on {address}: {}", in_words(&error)))?;
        let address =
            listener.local_addr().map_err(|error| format!("cannot listen: {}", in_words(&error)))?;
        let hosts = vec![address.to_string(), format!("localhost:{}", address.port())];
        let recording = Recording {
            open: Box::new(move || open(&path)),
            pause: Box::new(move |millis| speed.pause(millis)),
        };
        let replay = Arc::new(Replay::new(recording, Limits::default(), hosts));
        tell(&format!("A recording of {events} events. Its questions are history: they cannot be answered."));
        tell(&format!("listening on http://{address}"));
        tokio::select! {
            () = replay.serve(listener) => {}
            () = stopped => {}
        }
        Ok(())
    });
    runtime.shutdown_background();
    served
}

/// How many events there are. What cannot be played is told before anybody listens.
fn check(path: &Path) -> Result<u64, String> {
    let name = super::name(path);
    let mut items = Items::new(super::open(path)?);
    let (mut events, mut others) = (0_u64, 0_u64);
    while let Some(item) =
        items.next().map_err(|error| format!("cannot read {name}: {}", in_words(&error)))?
    {
        let text = item.bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        match text {
            Some(text) if Event::parse(&text).is_some() => events += 1,
            Some(text) if aaep::message::Message::parse(&text).is_some() => {}
            _ => others += 1,
        }
    }
    if events == 0 {
        return Err(format!("there is no event in {name}"));
    }
    if others > 0 {
        tell(&format!("{others} lines of {name} are neither events nor messages; they are left out."));
    }
    Ok(events)
}

fn open(path: &PathBuf) -> std::io::Result<Events> {
    let mut items = Items::new(std::fs::File::open(path)?);
    Ok(Box::new(std::iter::from_fn(move || {
        loop {
            // A file that cannot be read any more ends here.
            let item = items.next().ok().flatten()?;
            let text = item.bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
            if let Some(event) = text.and_then(Received::<Event>::parse) {
                return Some(Arc::new(event));
            }
        }
    })))
}
