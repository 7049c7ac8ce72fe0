//! Selection of the AAEP version (§12.5.2, C-C13, C-C14).

use std::cmp::Ordering;

use crate::grammar::is_version;

/// Returns the highest offered version that is compatible with the requested version: the same
/// major version, and no higher minor version. A version with a higher patch number is compatible,
/// but is returned only if no other version is.
pub(super) fn highest_common<'o>(requested: &str, offered: &'o [String]) -> Option<&'o str> {
    let requested = Version::parse(requested)?;
    offered
        .iter()
        .filter_map(|text| Some((Version::parse(text)?, &**text)))
        .filter(|(version, _)| version.major == requested.major && version.minor <= requested.minor)
        .max_by(|(left, _), (right, _)| {
            let is_not_newer = |version: &Version<'_>| version.compare(&requested) != Ordering::Greater;
            is_not_newer(left).cmp(&is_not_newer(right)).then_with(|| left.compare(right))
        })
        .map(|(_, text)| text)
}

struct Version<'v> {
    /// The major version as written: `01` is not major version 1.
    major: &'v str,
    minor: u64,
    patch: u64,
    suffix: Option<&'v str>,
}

impl<'v> Version<'v> {
    fn parse(text: &'v str) -> Option<Self> {
        if !is_version(text) {
            return None;
        }
        let (numbers, suffix) = match text.split_once('-') {
            Some((numbers, suffix)) => (numbers, Some(suffix)),
            None => (text, None),
        };
        let mut numbers = numbers.split('.');
        let major = numbers.next()?;
        let mut next_number = || numbers.next()?.parse().ok();
        Some(Self { major, minor: next_number()?, patch: next_number()?, suffix })
    }

    /// Compares versions of the same major version; a pre-release comes before its release.
    fn compare(&self, other: &Self) -> Ordering {
        let key = |version: &Self| (version.minor, version.patch, version.suffix.is_none());
        key(self).cmp(&key(other)).then_with(|| self.suffix.cmp(&other.suffix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(requested: &str, offered: &[&str]) -> Option<String> {
        let offered: Vec<_> = offered.iter().map(ToString::to_string).collect();
        highest_common(requested, &offered).map(str::to_owned)
    }

    #[test]
    fn the_highest_common_version_of_the_same_major_is_selected() {
        // C-C13
        assert_eq!(select("1.0.0", &["1.0.0"]).as_deref(), Some("1.0.0"));
        assert_eq!(select("1.7.2", &["1.0.0", "1.10.0", "1.2.0", "2.0.0"]).as_deref(), Some("1.2.0"));
        assert_eq!(select("1.10.0", &["1.9.0", "1.10.0", "1.2.0"]).as_deref(), Some("1.10.0"));
        assert_eq!(select("99.99.99", &["1.0.0"]), None);
        assert_eq!(select("0.1.0-draft", &["1.0.0"]), None);
        assert_eq!(select("2.0.0", &["1.0.0", "2.1.0"]), None);
    }

    #[test]
    fn a_newer_patch_version_is_compatible_but_not_preferred() {
        // C-C14
        assert_eq!(select("1.0.0", &["1.0.3"]).as_deref(), Some("1.0.3"));
        assert_eq!(select("1.0.0", &["1.0.3", "1.0.0"]).as_deref(), Some("1.0.0"));
        assert_eq!(select("1.0.5", &["1.0.3", "1.0.0", "1.0.9"]).as_deref(), Some("1.0.3"));
        assert_eq!(select("1.0.0-rc.1", &["1.0.0"]).as_deref(), Some("1.0.0"));
        assert_eq!(select("1.0.0", &["1.0.0-rc.1", "1.0.0"]).as_deref(), Some("1.0.0"));
    }

    #[test]
    fn an_invalid_version_is_not_selected() {
        for odd in ["", "1", "1.0", "v1.0.0", "01.0.0", "1.0.0.0", "1.99999999999999999999.0", "١.0.0"] {
            assert_eq!(select(odd, &["1.0.0"]), None, "{odd}");
        }
        assert_eq!(select("1.0.0", &["1.0", "x"]), None);
    }
}
