//! Sampled, through the binary: a few dozen mutations of each kind, spread evenly over the places where they can be made;
//! each must be found in the right line. Exhaustive: every bit of the newlines of one transcript.

use serde_json::Value;

use crate::asp::talk::{DEMOS, OTHER_DEMOS, Talk, demo};
use testing::cli::Finished;

#[track_caller]
fn named(run: &Finished, line: usize, what: &str) {
    assert_eq!((run.code, &*run.err), (1, ""), "{what}: {}", run.out);
    assert!(run.out.starts_with(&format!("stdin:{line}: error ")), "{what}, line {line}: {}", run.out);
    assert_eq!(run.out.lines().count(), 1, "{what}: {}", run.out);
}

/// Numbers that look random, and are the same in every run.
fn spread(round: usize, below: usize) -> usize {
    let digest = seal::Digest::of(&round.to_le_bytes());
    let bytes = <[u8; 8]>::try_from(&digest.as_bytes()[..8]).unwrap();
    usize::try_from(u64::from_le_bytes(bytes) >> 1).unwrap() % below
}

/// A transcript of more than two messages, and the round's number.
fn rounds(count: usize) -> impl Iterator<Item = (&'static Talk, usize)> {
    let long: Vec<_> = DEMOS.iter().filter(|talk| talk.messages.len() > 2).collect();
    (0..count).map(move |round| (long[round % long.len()], round))
}

#[test]
fn flipped_bits() {
    for (talk, round) in rounds(48) {
        let mut bytes = talk.text().into_bytes();
        let at = spread(round, bytes.len());
        if bytes[at] == b'\n' {
            continue;
        }
        let line = bytes[..at].split(|byte| *byte == b'\n').count();
        bytes[at] ^= 1 << (round % 8);
        named(
            &talk.verify_bytes(&bytes, &[]),
            line,
            &format!("{} bit {} of byte {at}", talk.name, round % 8),
        );
    }
}

#[test]
fn flipped_bits_of_newlines() {
    for talk in [demo("rejected"), demo("delegate")] {
        let text = talk.text();
        for (at, line) in text.match_indices('\n').map(|(at, _)| at).zip(1..) {
            for bit in 0..8 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                named(&talk.verify_bytes(&bytes, &[]), line, &format!("bit {bit} of newline {line}"));
            }
        }
    }
}

#[test]
fn changed_members() {
    let places = [
        "/version",
        "/messageId",
        "/sessionId",
        "/timestamp",
        "/sender/agentId",
        "/sender/orgId",
        "/sender/dpopProof",
        "/recipient",
        "/performative",
        "/content/mimeType",
        "/integrity/hash",
        "/integrity/previousHash",
        "/integrity/signature",
    ];
    for (talk, round) in rounds(4 * places.len()) {
        let at = spread(round, talk.messages.len());
        let mut value: Value = serde_json::from_str(&talk.messages[at]).unwrap();
        let place = places[round % places.len()];
        let member = value.pointer_mut(place).unwrap();
        let text = member.as_str().unwrap();
        let last = if text.ends_with('0') { '1' } else { '0' };
        *member = Value::from(format!("{}{last}", &text[..text.len() - 1]));
        let mut messages = talk.messages.clone();
        messages[at] = value.to_string();
        let messages: Vec<_> = messages.iter().map(String::as_str).collect();
        named(&talk.verify_messages(&messages), at + 1, &format!("{} {place}", talk.name));
    }
}

#[test]
fn swaps_drops_doubles_and_moves() {
    for (talk, round) in rounds(96) {
        let count = talk.messages.len();
        let mut messages: Vec<_> = talk.messages.iter().map(String::as_str).collect();
        let (one, other) = (spread(round, count), spread(round + 1000, count));
        let (line, what) = match round % 4 {
            _ if one == other => continue,
            0 => {
                messages.swap(one, other);
                (one.min(other), "swapped")
            }
            1 if one + 1 < count => {
                messages.remove(one);
                (one, "dropped")
            }
            2 => {
                messages.insert(other, messages[one]);
                (other, "doubled")
            }
            _ => {
                let moved = messages.remove(one);
                messages.insert(other, moved);
                (one.min(other), "moved")
            }
        };
        named(&talk.verify_messages(&messages), line + 1, &format!("{} {one} {other} {what}", talk.name));
    }
}

#[test]
fn parts_and_messages_from_elsewhere() {
    let mut sources: Vec<_> = OTHER_DEMOS.iter().flat_map(|talk| &talk.messages).collect();
    sources.extend(&demo("delegate").messages);
    for (talk, round) in rounds(40).filter(|(talk, _)| talk.name != "delegate") {
        let mut messages: Vec<_> = talk.messages.iter().map(String::as_str).collect();
        let at = 1 + spread(round, messages.len() - 1);
        let source = sources[spread(round + 500, sources.len())].as_str();
        if round % 2 == 0 {
            messages.insert(at, source);
        } else {
            messages[at] = source;
        }
        named(&talk.verify_messages(&messages), at + 1, &format!("{} {at} from elsewhere", talk.name));
    }
    for (talk, round) in rounds(32) {
        let place =
            ["/sender/dpopProof", "/integrity/hash", "/integrity/signature", "/integrity/previousHash"]
                [round / 8];
        let (at, from) = (spread(round, talk.messages.len()), spread(round + 900, talk.messages.len()));
        if at == from {
            continue;
        }
        let values: Vec<Value> =
            talk.messages.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        let mut value = values[at].clone();
        *value.pointer_mut(place).unwrap() = values[from].pointer(place).unwrap().clone();
        let text = value.to_string();
        let mut messages: Vec<_> = talk.messages.iter().map(String::as_str).collect();
        messages[at] = &text;
        named(&talk.verify_messages(&messages), at + 1, &format!("{} {place} of {from} in {at}", talk.name));
    }
}

/// However many threads look at it, the first bad line is the one that is told.
#[test]
fn the_first_of_many_faults_is_named_whatever_the_number_of_threads() {
    let talk = demo("agreed");
    let mut messages = talk.messages.clone();
    for at in [5, 6, 11, 18] {
        messages[at] = messages[at].replace("\"performative\"", "\"performative2\"");
    }
    // A break of the chain before bytes that are no message at all.
    messages.remove(3);
    let text = messages.join("\n") + "\nnonsense\n";
    for jobs in ["1", "2", "3", "7", "64"] {
        let run = talk.verify_bytes(text.as_bytes(), &["--jobs", jobs]);
        named(&run, 4, jobs);
        assert!(run.out.contains("hash_chain_integrity"), "{}", run.out);
    }
}
