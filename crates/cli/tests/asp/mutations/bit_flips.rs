//! Exhaustive: flips every bit of every byte of every message. `through_binary.rs` tests the newlines
//! between messages.

use asp::message::Authenticator;

use super::{CHAINS, every_message};

/// Flips every bit of every `parts`-th message, starting with message `part`. The parts are separate tests, so they
/// can run in parallel.
fn flip_every_bit(part: usize, parts: usize) {
    let mut authenticator = Authenticator::default();
    let mut flipped = 0;
    for (chain, at) in every_message().into_iter().skip(part).step_by(parts) {
        let mut line = chain.transcript.messages[at].clone().into_bytes();
        assert!(chain.accepts(&mut authenticator, at, &line), "{} {at}", chain.transcript.name);
        for byte in 0..line.len() {
            for bit in 0..8 {
                line[byte] ^= 1 << bit;
                let is_accepted = chain.accepts(&mut authenticator, at, &line);
                assert!(!is_accepted, "{} line {}: bit {bit} of byte {byte}", chain.transcript.name, at + 1);
                line[byte] ^= 1 << bit;
                flipped += 1;
            }
        }
    }
    println!("{flipped} bits flipped, part {} of {parts}, over {} transcripts", part + 1, CHAINS.len());
}

#[test]
fn every_flipped_bit_in_even_messages_is_detected() {
    flip_every_bit(0, 2);
}

#[test]
fn every_flipped_bit_in_odd_messages_is_detected() {
    flip_every_bit(1, 2);
}
