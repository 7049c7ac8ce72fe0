//! The contract of `Journal`: every behaviour is shown by every implementation.
//!
//! - `ground`: where a journal stands, and how it is opened again.
//! - `log`, `ledger`, `keeping`: the behaviours.
//! - `random`: random batches, trims and crashes beside a naive model.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod ground;
mod keeping;
mod ledger;
mod log;
mod model;
mod random;

use libtest_mimic::{Arguments, Trial};

use ground::{Ground, InMemory, OnDisk};

type New = fn() -> Box<dyn Ground>;
type Behaviour = (&'static str, fn(&dyn Ground));

fn main() {
    let grounds: [(&str, New); 2] =
        [("memory", || Box::new(InMemory)), ("sqlite", || Box::new(OnDisk::default()))];
    let behaviours = [log::BEHAVIOURS, ledger::BEHAVIOURS, keeping::BEHAVIOURS, random::BEHAVIOURS].concat();
    let mut trials = Vec::new();
    for (kind, ground) in grounds {
        for (name, behaviour) in &behaviours {
            let behaviour = *behaviour;
            trials.push(Trial::test(format!("{kind}: {name}"), move || {
                behaviour(&*ground());
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
