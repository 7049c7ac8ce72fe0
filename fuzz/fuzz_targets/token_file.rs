//! Fuzzes the parser of token files. The parser must not panic, and it must not accept a name or a hash twice. Accepted
//! tokens must survive a round trip.

#![no_main]

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use seal::json::Tape;
use wire::auth::Tokens;

/// The members of a line, except times, which may be written in another way.
const MEMBERS: [&str; 6] = ["name", "hash", "role", "agent_id", "display_name", "scope"];

fuzz_target!(|text: &str| {
    let path = Path::new("tokens");
    let Ok(tokens) = Tokens::parse(text, path) else { return };
    let written = tokens.to_text();
    let reread = Tokens::parse(&written, path).expect("a written file is accepted");
    assert_eq!(reread.to_text(), written);

    let (original, written) = (read_lines(text), read_lines(&written));
    assert_eq!(tokens.len(), original.len());
    for name in ["name", "hash"] {
        let distinct: HashSet<&String> = original.iter().map(|line| &line[name]).collect();
        assert_eq!(distinct.len(), original.len(), "{name} was accepted twice in {text}");
    }
    assert_eq!(original, written);
});

/// Returns the members of each line, sorted by name. Members that a line does not have are empty.
fn read_lines(text: &str) -> Vec<BTreeMap<&'static str, String>> {
    let read_line = |line: &str| {
        let mut tape = Tape::default();
        let doc = tape.read(line).expect("an accepted line is JSON");
        let read_member = |name: &&'static str| {
            let member = doc.root().member(name);
            let text = member.and_then(|member| member.text()).unwrap_or_default().into_owned();
            let mut items: Vec<_> = member.iter().flat_map(|member| member.items()).collect();
            items.sort_by_key(|item| item.text());
            let items: String = items.iter().map(|item| format!("{:?}", item.text())).collect();
            (*name, text + &items)
        };
        MEMBERS.iter().map(read_member).collect()
    };
    let mut lines: Vec<BTreeMap<_, _>> =
        text.lines().filter(|line| !line.trim().is_empty()).map(read_line).collect();
    lines.sort();
    lines
}
