//! Exhaustive: swaps any two messages, drops any message or range of messages before the last, and duplicates or moves any
//! message to any position.

use asp::message::AuthenticatedMessage;

use super::{CHAINS, TranscriptChain};

/// Asserts that the first rejected message is the one at this index.
#[track_caller]
fn assert_rejected_at(
    chain: &TranscriptChain,
    messages: &[&AuthenticatedMessage],
    at: usize,
    mutation: &str,
) {
    assert_eq!(
        chain.first_rejected(messages.iter().copied()),
        Some(at),
        "{}: {mutation}",
        chain.transcript.name
    );
}

#[test]
fn every_swap_drop_duplicate_and_move_is_detected_where_it_starts() {
    let (mut swaps, mut drops, mut duplicates, mut moves) = (0, 0, 0, 0);
    for chain in CHAINS.iter() {
        let valid: Vec<&AuthenticatedMessage> = chain.messages.iter().collect();
        assert_eq!(chain.first_rejected(valid.iter().copied()), None);
        for one in 0..valid.len() {
            for other in one + 1..valid.len() {
                let mut messages = valid.clone();
                messages.swap(one, other);
                assert_rejected_at(chain, &messages, one, &format!("{one} and {other} swapped"));
                swaps += 1;
            }
            if one + 1 < valid.len() {
                let mut messages = valid.clone();
                messages.remove(one);
                assert_rejected_at(chain, &messages, one, &format!("{one} dropped"));
                drops += 1;
            }
            for position in 0..=valid.len() {
                let mut messages = valid.clone();
                messages.insert(position, valid[one]);
                // A copy right before the original is accepted, and the original is rejected as the duplicate.
                let at = if position == one { one + 1 } else { position };
                assert_rejected_at(chain, &messages, at, &format!("{one} duplicated at {position}"));
                duplicates += 1;
            }
            for position in (0..valid.len()).filter(|position| *position != one) {
                let mut messages = valid.clone();
                let moved = messages.remove(one);
                messages.insert(position, moved);
                assert_rejected_at(
                    chain,
                    &messages,
                    one.min(position),
                    &format!("{one} moved to {position}"),
                );
                moves += 1;
            }
        }
    }
    println!("{swaps} swaps, {drops} drops, {duplicates} duplicates, {moves} moves");
}

#[test]
fn every_range_dropped_from_the_front_or_the_middle_is_detected() {
    let mut count = 0;
    for chain in CHAINS.iter() {
        let all = &chain.messages;
        for from in 0..all.len() {
            for to in from + 1..all.len() {
                let messages: Vec<_> = all[..from].iter().chain(&all[to..]).collect();
                assert_rejected_at(chain, &messages, from, &format!("{from} to {to} dropped"));
                count += 1;
            }
        }
    }
    println!("{count} ranges dropped");
}
