//! How many critical events an agent may publish: they wait for nobody, so one that marks everything so would drown the
//! others (T4). Questions are counted by themselves, as what is open.

use std::collections::HashMap;
use std::sync::Arc;

/// What each agent published in its present minute.
#[derive(Debug, Default)]
pub(super) struct Criticals(HashMap<Arc<str>, Minute>);

#[derive(Clone, Copy, Debug)]
struct Minute {
    began: i64,
    count: usize,
}

const MINUTE: i64 = 60_000;
/// Beyond so many agents, those whose minute is over are forgotten.
const MANY: usize = 1_024;

impl Criticals {
    /// Takes so many more of an agent, or none if that were too many in this minute.
    pub(super) fn take(&mut self, agent: &Arc<str>, count: usize, most: usize, now: i64) -> bool {
        if count == 0 {
            return true;
        }
        let minute = self.0.get(agent).filter(|minute| minute.holds(now)).copied();
        let minute = minute.unwrap_or(Minute { began: now, count: 0 });
        let count = minute.count.saturating_add(count);
        if count > most {
            return false;
        }
        if self.0.len() >= MANY {
            self.0.retain(|_, minute| minute.holds(now));
        }
        self.0.insert(agent.clone(), Minute { count, ..minute });
        true
    }
}

impl Minute {
    /// A clock that went back ends it, too.
    fn holds(self, now: i64) -> bool {
        (self.began..self.began.saturating_add(MINUTE)).contains(&now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_has_its_own_minute() {
        let mut criticals = Criticals::default();
        let (bank, post): (Arc<str>, Arc<str>) = ("bank".into(), "post".into());
        assert!(criticals.take(&bank, 2, 3, 0));
        assert!(!criticals.take(&bank, 2, 3, 1), "all or none");
        assert!(criticals.take(&bank, 1, 3, 59_999));
        assert!(!criticals.take(&bank, 1, 3, 59_999));
        assert!(criticals.take(&bank, 0, 3, 59_999) && criticals.take(&post, 3, 3, 59_999));
        assert!(criticals.take(&bank, 1, 3, 60_000));
        assert!(criticals.take(&bank, 3, 3, -5), "a clock that went back");
    }

    #[test]
    fn agents_that_fell_silent_are_forgotten() {
        let mut criticals = Criticals::default();
        for number in 0..MANY {
            assert!(criticals.take(&number.to_string().into(), 1, 1, 0));
        }
        assert!(criticals.take(&"new".into(), 1, 1, MINUTE));
        assert_eq!(criticals.0.len(), 1);
    }
}
