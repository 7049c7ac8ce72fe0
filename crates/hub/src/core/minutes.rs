//! What an agent may do in a minute for one person: critical events and questions wait for nobody, so one that has no end of
//! them would drown the others (T4).

use std::collections::HashMap;

use seal::UnixMillis;

/// What each agent did for each person in its present minute.
#[derive(Debug, Default)]
pub(super) struct Minutes(HashMap<Box<str>, Minute>);

#[derive(Clone, Copy, Debug)]
struct Minute {
    began: UnixMillis,
    count: usize,
}

const MINUTE: i64 = 60_000;
/// Beyond so many agents, those whose minute is over are forgotten.
const MANY: usize = 1_024;

impl Minutes {
    /// Whether there could be one more.
    pub(super) fn has_room(&self, agent: &str, most: usize, now: UnixMillis) -> bool {
        self.0.get(agent).filter(|minute| minute.holds(now)).is_none_or(|minute| minute.count < most)
    }

    /// Takes so many more of an agent, or none if that were too many in this minute.
    pub(super) fn take(&mut self, agent: &str, count: usize, most: usize, now: UnixMillis) -> bool {
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
        self.0.insert(agent.into(), Minute { count, ..minute });
        true
    }
}

impl Minute {
    /// A clock that went back ends it, too.
    fn holds(self, now: UnixMillis) -> bool {
        (self.began..self.began.saturating_add(MINUTE)).contains(&now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_has_its_own_minute() {
        let mut minutes = Minutes::default();
        let (bank, post) = ("bank", "post");
        assert!(minutes.take(bank, 2, 3, UnixMillis::new(0)));
        assert!(!minutes.take(bank, 2, 3, UnixMillis::new(1)), "all or none");
        assert!(minutes.take(bank, 1, 3, UnixMillis::new(59_999)));
        assert!(!minutes.take(bank, 1, 3, UnixMillis::new(59_999)));
        assert!(
            minutes.take(bank, 0, 3, UnixMillis::new(59_999))
                && minutes.take(post, 3, 3, UnixMillis::new(59_999))
        );
        assert!(
            !minutes.has_room(bank, 3, UnixMillis::new(59_999))
                && minutes.has_room(post, 4, UnixMillis::new(59_999))
        );
        assert!(
            minutes.has_room(bank, 3, UnixMillis::new(60_000))
                && minutes.take(bank, 1, 3, UnixMillis::new(60_000))
        );
        assert!(minutes.take(bank, 3, 3, UnixMillis::new(-5)), "a clock that went back");
    }

    #[test]
    fn agents_that_fell_silent_are_forgotten() {
        let mut minutes = Minutes::default();
        for number in 0..MANY {
            assert!(minutes.take(&number.to_string(), 1, 1, UnixMillis::new(0)));
        }
        assert!(minutes.take("new", 1, 1, UnixMillis::new(MINUTE)));
        assert_eq!(minutes.0.len(), 1);
    }
}
