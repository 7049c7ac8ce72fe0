//! `make-recording EVENTS FILE`: writes a lawful recording to measure with.

use std::io::{BufWriter, Write};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(events), Some(file)) =
        (arguments.next().and_then(|n| n.parse::<usize>().ok()), arguments.next())
    else {
        eprintln!("usage: make-recording EVENTS FILE");
        std::process::exit(2);
    };
    let mut recorder = sayso_benches::Recorder::default();
    let mut out = BufWriter::new(std::fs::File::create(file)?);
    let mut written = 0;
    let mut text = String::new();
    while written < events {
        text.clear();
        written += recorder.session(&mut text);
        out.write_all(text.as_bytes())?;
    }
    out.flush()
}
