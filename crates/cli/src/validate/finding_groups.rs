//! Groups findings by rule, for people who read the output of a long input.

use std::collections::BTreeMap;

use aaep::rule::Severity;

use crate::output::pluralize;

/// How many findings of a rule are listed: in the groups, and one by one on a terminal.
pub(super) const MAX_LISTED: u64 = 3;

/// The findings of each rule: how many, and where the first ones are. Memory is limited by the number of rules.
#[derive(Default)]
pub(super) struct FindingGroups {
    groups: BTreeMap<(&'static str, bool), FindingGroup>,
}

#[derive(Default)]
struct FindingGroup {
    count: u64,
    /// The first locations, as `FILE:LINE`.
    places: Vec<String>,
}

impl FindingGroups {
    /// Adds a finding. Returns how many findings of the same rule and severity there are now.
    pub(super) fn add(&mut self, rule: &'static str, severity: Severity, file: &str, line: u64) -> u64 {
        let group = self.groups.entry((rule, severity == Severity::Error)).or_default();
        group.count += 1;
        if group.count <= MAX_LISTED {
            group.places.push(format!("{file}:{line}"));
        }
        group.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns whether a rule was broken so often that its findings are hard to read one by one.
    pub(super) fn has_repetitions(&self) -> bool {
        self.groups.values().any(|group| group.count > MAX_LISTED)
    }

    /// Returns one line for each rule, errors and frequent findings first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.sorted().into_iter().map(|(rule, is_error, group)| group.describe(rule, is_error)).collect()
    }

    /// Says how to learn more about the first rule of the list.
    pub(super) fn hint(&self) -> Option<String> {
        let (rule, ..) = self.sorted().into_iter().next()?;
        Some(format!("`sayso explain {rule}` says what that rule means."))
    }

    fn sorted(&self) -> Vec<(&'static str, bool, &FindingGroup)> {
        let mut groups: Vec<_> =
            self.groups.iter().map(|((rule, is_error), group)| (*rule, *is_error, group)).collect();
        groups.sort_by_key(|(_, is_error, group)| (!is_error, std::cmp::Reverse(group.count)));
        groups
    }
}

impl FindingGroup {
    fn describe(&self, rule: &str, is_error: bool) -> String {
        let noun = if is_error { "error" } else { "warning" };
        let rest = self.count - self.places.len() as u64;
        let more = if rest > 0 { format!(" and {}", pluralize(rest, "more place")) } else { String::new() };
        format!("{rule}: {}, at {}{more}", pluralize(self.count, noun), self.places.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_first_and_then_frequent_findings() {
        let mut groups = FindingGroups::default();
        assert!(groups.is_empty() && groups.lines().is_empty() && groups.hint().is_none());
        let mut add = |rule, severity, file, line| groups.add(rule, severity, file, line);
        for line in 1..=9 {
            assert_eq!(add("AAEP-A.4-1", Severity::Warning, "a", line), line);
        }
        // The same rule can have findings of both severities.
        assert_eq!(add("AAEP-A.4-1", Severity::Error, "a", 10), 1);
        for line in 11..=14 {
            add("AAEP-3.5-4", Severity::Error, "b", line);
        }
        assert!(groups.has_repetitions());
        assert_eq!(
            groups.lines(),
            [
                "AAEP-3.5-4: 4 errors, at b:11, b:12, b:13 and 1 more place",
                "AAEP-A.4-1: 1 error, at a:10",
                "AAEP-A.4-1: 9 warnings, at a:1, a:2, a:3 and 6 more places",
            ]
        );
        assert_eq!(groups.hint().unwrap(), "`sayso explain AAEP-3.5-4` says what that rule means.");
    }
}
