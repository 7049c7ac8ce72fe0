//! Exhaustive: any two messages swapped, any but the last dropped, any doubled at any place, any moved to any place.

use asp::message::Sealed;

use super::{CHAINS, Chain};

/// What is left is bad from exactly this line on, counted from 0.
#[track_caller]
fn bad_at(chain: &Chain, messages: &[&Sealed], at: usize, what: &str) {
    assert_eq!(chain.first_bad(messages.iter().copied()), Some(at), "{}: {what}", chain.talk.name);
}

#[test]
fn every_swap_drop_double_and_move_is_detected_where_it_begins() {
    let (mut swaps, mut drops, mut doubles, mut moves) = (0, 0, 0, 0);
    for chain in CHAINS.iter() {
        let good: Vec<&Sealed> = chain.messages.iter().collect();
        assert_eq!(chain.first_bad(good.iter().copied()), None);
        for one in 0..good.len() {
            for other in one + 1..good.len() {
                let mut messages = good.clone();
                messages.swap(one, other);
                bad_at(chain, &messages, one, &format!("{one} and {other} swapped"));
                swaps += 1;
            }
            if one + 1 < good.len() {
                let mut messages = good.clone();
                messages.remove(one);
                bad_at(chain, &messages, one, &format!("{one} dropped"));
                drops += 1;
            }
            for place in 0..=good.len() {
                let mut messages = good.clone();
                messages.insert(place, good[one]);
                // Before itself, the copy is the one that stands right.
                let at = if place == one { one + 1 } else { place };
                bad_at(chain, &messages, at, &format!("{one} again at {place}"));
                doubles += 1;
            }
            for place in (0..good.len()).filter(|place| *place != one) {
                let mut messages = good.clone();
                let moved = messages.remove(one);
                messages.insert(place, moved);
                bad_at(chain, &messages, one.min(place), &format!("{one} moved to {place}"));
                moves += 1;
            }
        }
    }
    println!("{swaps} swaps, {drops} drops, {doubles} doubles, {moves} moves");
}

#[test]
fn every_stretch_that_is_dropped_from_the_front_or_the_middle_is_detected() {
    let mut count = 0;
    for chain in CHAINS.iter() {
        let all = &chain.messages;
        for from in 0..all.len() {
            for to in from + 1..all.len() {
                let messages: Vec<_> = all[..from].iter().chain(&all[to..]).collect();
                bad_at(chain, &messages, from, &format!("{from} to {to} dropped"));
                count += 1;
            }
        }
    }
    println!("{count} stretches dropped");
}
