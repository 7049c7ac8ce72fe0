//! `make-recording EVENTS FILE`: writes a valid recording for benchmarks.

use std::io::{BufWriter, Write};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(events), Some(file)) =
        (arguments.next().and_then(|n| n.parse::<usize>().ok()), arguments.next())
    else {
        eprintln!("usage: make-recording EVENTS FILE");
        std::process::exit(2);
    };
    let mut generator = sayso_benches::RecordingGenerator::default();
    let mut out = BufWriter::new(std::fs::File::create(file)?);
    let mut written = 0;
    let mut text = String::new();
    while written < events {
        text.clear();
        written += generator.generate_session(&mut text);
        out.write_all(text.as_bytes())?;
    }
    out.flush()
}
