//! Mutations that run through the binary: a few dozen of each kind at pseudo-random positions, and every bit of the
//! newlines of two transcripts. Each mutation must be reported at the right line.

use serde_json::Value;

use crate::asp::transcripts::{DEMOS, OTHER_DEMOS, TestTranscript, demo_transcript};
use testing::cli::CommandOutput;

#[track_caller]
fn assert_names_line(run: &CommandOutput, line: usize, mutation: &str) {
    assert_eq!((run.exit_code, &*run.stderr), (1, ""), "{mutation}: {}", run.stdout);
    assert!(
        run.stdout.starts_with(&format!("stdin:{line}: error: ")),
        "{mutation}, line {line}: {}",
        run.stdout
    );
    assert_eq!(run.stdout.lines().count(), 1, "{mutation}: {}", run.stdout);
}

/// Returns a pseudo-random index that is the same in every run.
fn pseudo_random_index(round: usize, below: usize) -> usize {
    let digest = seal::Digest::of(&round.to_le_bytes());
    let bytes = <[u8; 8]>::try_from(&digest.as_bytes()[..8]).unwrap();
    usize::try_from(u64::from_le_bytes(bytes) >> 1).unwrap() % below
}

/// Cycles through the transcripts that have more than two messages. Returns each with its round number.
fn rounds(count: usize) -> impl Iterator<Item = (&'static TestTranscript, usize)> {
    let long: Vec<_> = DEMOS.iter().filter(|transcript| transcript.messages.len() > 2).collect();
    (0..count).map(move |round| (long[round % long.len()], round))
}

#[test]
fn a_flipped_bit_is_reported_at_its_line() {
    for (transcript, round) in rounds(48) {
        let mut bytes = transcript.text().into_bytes();
        let at = pseudo_random_index(round, bytes.len());
        if bytes[at] == b'\n' {
            continue;
        }
        let line = bytes[..at].split(|byte| *byte == b'\n').count();
        bytes[at] ^= 1 << (round % 8);
        assert_names_line(
            &transcript.verify_bytes(&bytes, &[]),
            line,
            &format!("{} bit {} of byte {at}", transcript.name, round % 8),
        );
    }
}

#[test]
fn a_flipped_bit_of_a_newline_is_reported_at_its_line() {
    for transcript in [demo_transcript("rejected"), demo_transcript("delegate")] {
        let text = transcript.text();
        for (at, line) in text.match_indices('\n').map(|(at, _)| at).zip(1..) {
            for bit in 0..8 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                assert_names_line(
                    &transcript.verify_bytes(&bytes, &[]),
                    line,
                    &format!("bit {bit} of newline {line}"),
                );
            }
        }
    }
}

#[test]
fn a_changed_member_is_reported_at_its_line() {
    let pointers = [
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
    for (transcript, round) in rounds(4 * pointers.len()) {
        let at = pseudo_random_index(round, transcript.messages.len());
        let mut value: Value = serde_json::from_str(&transcript.messages[at]).unwrap();
        let pointer = pointers[round % pointers.len()];
        let member = value.pointer_mut(pointer).unwrap();
        let text = member.as_str().unwrap();
        let other_end = if text.ends_with('0') { '1' } else { '0' };
        *member = Value::from(format!("{}{other_end}", &text[..text.len() - 1]));
        let mut messages = transcript.messages.clone();
        messages[at] = value.to_string();
        let messages: Vec<_> = messages.iter().map(String::as_str).collect();
        assert_names_line(
            &transcript.verify_messages(&messages),
            at + 1,
            &format!("{} {pointer}", transcript.name),
        );
    }
}

#[test]
fn a_swapped_dropped_duplicated_or_moved_message_is_reported() {
    for (transcript, round) in rounds(96) {
        let count = transcript.messages.len();
        let mut messages: Vec<_> = transcript.messages.iter().map(String::as_str).collect();
        let (one, other) = (pseudo_random_index(round, count), pseudo_random_index(round + 1000, count));
        let (line, mutation) = match round % 4 {
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
                (other, "duplicated")
            }
            _ => {
                let moved = messages.remove(one);
                messages.insert(other, moved);
                (one.min(other), "moved")
            }
        };
        assert_names_line(
            &transcript.verify_messages(&messages),
            line + 1,
            &format!("{} {one} {other} {mutation}", transcript.name),
        );
    }
}

#[test]
fn foreign_messages_and_members_are_reported() {
    let mut sources: Vec<_> = OTHER_DEMOS.iter().flat_map(|transcript| &transcript.messages).collect();
    sources.extend(&demo_transcript("delegate").messages);
    for (transcript, round) in rounds(40).filter(|(transcript, _)| transcript.name != "delegate") {
        let mut messages: Vec<_> = transcript.messages.iter().map(String::as_str).collect();
        let at = 1 + pseudo_random_index(round, messages.len() - 1);
        let source = sources[pseudo_random_index(round + 500, sources.len())].as_str();
        if round % 2 == 0 {
            messages.insert(at, source);
        } else {
            messages[at] = source;
        }
        assert_names_line(
            &transcript.verify_messages(&messages),
            at + 1,
            &format!("{} {at} is foreign", transcript.name),
        );
    }
    for (transcript, round) in rounds(32) {
        let pointer =
            ["/sender/dpopProof", "/integrity/hash", "/integrity/signature", "/integrity/previousHash"]
                [round / 8];
        let (at, from) = (
            pseudo_random_index(round, transcript.messages.len()),
            pseudo_random_index(round + 900, transcript.messages.len()),
        );
        if at == from {
            continue;
        }
        let values: Vec<Value> =
            transcript.messages.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        let mut value = values[at].clone();
        *value.pointer_mut(pointer).unwrap() = values[from].pointer(pointer).unwrap().clone();
        let text = value.to_string();
        let mut messages: Vec<_> = transcript.messages.iter().map(String::as_str).collect();
        messages[at] = &text;
        assert_names_line(
            &transcript.verify_messages(&messages),
            at + 1,
            &format!("{} {pointer} of {from} in {at}", transcript.name),
        );
    }
}

#[test]
fn the_first_of_many_faults_is_reported_for_any_number_of_threads() {
    let transcript = demo_transcript("agreed");
    let mut messages = transcript.messages.clone();
    for at in [5, 6, 11, 18] {
        messages[at] = messages[at].replace("\"performative\"", "\"performative2\"");
    }
    // Without this message, the hash chain breaks at line 4, before the other faults.
    messages.remove(3);
    let text = messages.join("\n") + "\nnonsense\n";
    for jobs in ["1", "2", "3", "7", "64"] {
        let run = transcript.verify_bytes(text.as_bytes(), &["--jobs", jobs]);
        assert_names_line(&run, 4, jobs);
        assert!(run.stdout.contains("hash_chain_integrity"), "{}", run.stdout);
    }
}
