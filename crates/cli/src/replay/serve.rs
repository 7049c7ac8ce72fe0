//! Serves a recording to listeners. Each listener gets the recording from the start.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aaep::ParsedDocument;
use aaep::event::Event;
use tokio::net::TcpListener;
use wire::replay::{RecordedEvents, Replay, ReplayLimits, ReplaySource};

use super::playback_clock::Speed;
use crate::hub_args::{build_runtime, parse_listen_address, shutdown_signal};
use crate::output::{describe_io_error, print_stderr};
use crate::validate::item_reader::ItemReader;

pub(super) fn run(path: &Path, address: &str, speed: Speed) -> Result<(), String> {
    let invalid = || {
        format!("{address:?} is not an address with a port, such as 127.0.0.1:8787; port 0 picks a free port")
    };
    let address: SocketAddr = parse_listen_address(address).ok_or_else(invalid)?;
    if !address.ip().is_loopback() {
        return Err(
            "anyone who connects gets the recording without a token, so --listen works on loopback only"
                .to_owned(),
        );
    }
    if path.as_os_str() == "-" {
        return Err("every listener gets the recording from the start, so --listen needs a file".to_owned());
    }
    let events = count_events(path)?;
    let runtime = build_runtime(2)?;
    let path = path.to_owned();
    let result = runtime.block_on(async move {
        let shutdown = shutdown_signal();
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| format!("cannot listen on {address}: {}", describe_io_error(&error)))?;
        let address =
            listener.local_addr().map_err(|error| format!("cannot listen: {}", describe_io_error(&error)))?;
        let hosts = vec![address.to_string(), format!("localhost:{}", address.port())];
        let recording = ReplaySource {
            open: Box::new(move || open_events(&path)),
            delay: Box::new(move |millis| speed.scale_pause(millis)),
        };
        let replay = Arc::new(Replay::new(recording, ReplayLimits::default(), hosts));
        print_stderr(&format!("A recording of {events} events. Its questions cannot be answered."));
        print_stderr(&format!("listening on http://{address}"));
        tokio::select! {
            () = replay.serve(listener) => {}
            () = shutdown => {}
        }
        Ok(())
    });
    runtime.shutdown_background();
    result
}

/// Counts the events. Input that cannot be played is reported before the server starts.
fn count_events(path: &Path) -> Result<u64, String> {
    let name = super::display_name(path);
    let mut items = ItemReader::new(super::open(path)?);
    let (mut events, mut skipped_items) = (0_u64, 0_u64);
    while let Some(item) =
        items.next().map_err(|error| format!("cannot read {name}: {}", describe_io_error(&error)))?
    {
        let text = item.bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        match text {
            Some(text) if Event::parse(&text).is_some() => events += 1,
            Some(text) if aaep::message::Message::parse(&text).is_some() => {}
            _ => skipped_items += 1,
        }
    }
    if events == 0 {
        return Err(format!("{name} contains no events"));
    }
    if skipped_items > 0 {
        print_stderr(&format!(
            "{skipped_items} lines of {name} are neither events nor messages and are skipped."
        ));
    }
    Ok(events)
}

fn open_events(path: &PathBuf) -> std::io::Result<RecordedEvents> {
    let mut items = ItemReader::new(std::fs::File::open(path)?);
    Ok(Box::new(std::iter::from_fn(move || {
        loop {
            // A read error ends the recording here.
            let item = items.next().ok().flatten()?;
            let text = item.bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
            if let Some(event) = text.and_then(ParsedDocument::<Event>::parse) {
                return Some(Arc::new(event));
            }
        }
    })))
}
