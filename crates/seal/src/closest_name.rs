//! Suggestions for misspelled names.

/// Longer names get no suggestion, so that input from outside cannot cost much time.
const MAX_NAME_BYTES: usize = 128;

/// Returns the known name that `name` most probably stands for: the one with the fewest inserted, deleted or replaced
/// characters, if they are at most a quarter of the name and at most three. A name of three letters may have one.
///
/// ```
/// let known = ["hub.lease", "hub.sessions"];
/// assert_eq!(seal::closest_name("hub.leese", known), Some("hub.lease"));
/// assert_eq!(seal::closest_name("retention", known), None);
/// ```
pub fn closest_name<N: AsRef<str> + Ord>(name: &str, known: impl IntoIterator<Item = N>) -> Option<N> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let with_distance = |known: N| (strsim::levenshtein(name, known.as_ref()), known);
    let (distance, closest) = known.into_iter().map(with_distance).min()?;
    let max_distance = (name.len() / 4).clamp(usize::from(name.len() >= 3), 3);
    (distance <= max_distance).then_some(closest)
}
