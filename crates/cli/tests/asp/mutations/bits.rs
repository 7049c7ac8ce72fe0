//! Exhaustive: every bit of every byte of every message. Newlines: see `binary`.

use asp::message::Authenticator;

use super::{CHAINS, every_message};

/// The messages are shared out, so that the parts run beside each other.
fn flip_every_bit(part: usize, parts: usize) {
    let mut authenticator = Authenticator::default();
    let mut flipped = 0;
    for (chain, at) in every_message().into_iter().skip(part).step_by(parts) {
        let mut line = chain.talk.messages[at].clone().into_bytes();
        assert!(chain.takes(&mut authenticator, at, &line), "{} {at}", chain.talk.name);
        for byte in 0..line.len() {
            for bit in 0..8 {
                line[byte] ^= 1 << bit;
                let taken = chain.takes(&mut authenticator, at, &line);
                assert!(!taken, "{} line {}: bit {bit} of byte {byte}", chain.talk.name, at + 1);
                line[byte] ^= 1 << bit;
                flipped += 1;
            }
        }
    }
    println!("{flipped} bits flipped, part {part} of {parts}, over {} transcripts", CHAINS.len());
}

#[test]
fn every_flipped_bit_is_detected_first_half() {
    flip_every_bit(0, 2);
}

#[test]
fn every_flipped_bit_is_detected_second_half() {
    flip_every_bit(1, 2);
}
