//! Small grammars. A string must match completely; a trailing newline is not ignored (C-A5).

/// Returns whether `text` is `prefix` followed by 1 to 64 ASCII letters or digits: the form of
/// every AAEP id (§3.2.3, §3.2.4, §6.2.1).
pub(crate) fn is_id(prefix: &str, text: &str) -> bool {
    text.as_bytes()
        .strip_prefix(prefix.as_bytes())
        .is_some_and(|tail| (1..=64).contains(&tail.len()) && is_alphanumeric(tail))
}

/// Returns whether all bytes are ASCII letters or digits. It checks sixteen bytes at a time,
/// because every event has several ids with 32 digits.
fn is_alphanumeric(bytes: &[u8]) -> bool {
    fn all_alphanumeric(bytes: &[u8]) -> u8 {
        bytes.iter().fold(1, |all, byte| {
            all & (u8::from((byte | 0x20).wrapping_sub(b'a') < 26) | u8::from(byte.wrapping_sub(b'0') < 10))
        })
    }
    let (blocks, rest) = bytes.as_chunks::<16>();
    blocks.iter().fold(all_alphanumeric(rest), |all, block| all & all_alphanumeric(block)) == 1
}

/// Returns whether `text` is a tool's name: a letter or `_`, then up to 255 of letters, digits,
/// `_`, `.`, `-` (§4.3.1, schema).
pub(crate) fn is_tool_name(text: &str) -> bool {
    matches_head_and_tail(
        text,
        1..=256,
        |head| head.is_ascii_alphabetic() || head == b'_',
        |tail| tail.is_ascii_alphanumeric() || matches!(tail, b'_' | b'.' | b'-'),
    )
}

/// Returns whether `text` is an error code: `A`-`Z`, then 1 to 63 of `A`-`Z`, digits, `_` (§4.1.3,
/// schema).
pub(crate) fn is_error_code(text: &str) -> bool {
    matches_head_and_tail(
        text,
        2..=64,
        |head| head.is_ascii_uppercase(),
        |tail| tail.is_ascii_uppercase() || tail.is_ascii_digit() || tail == b'_',
    )
}

/// Returns whether `text` is a reason in snake case: `a`-`z`, then 1 to 63 of `a`-`z`, digits, `_`
/// (§4.1.4, schema).
pub(crate) fn is_reason(text: &str) -> bool {
    matches_head_and_tail(
        text,
        2..=64,
        |head| head.is_ascii_lowercase(),
        |tail| tail.is_ascii_lowercase() || tail.is_ascii_digit() || tail == b'_',
    )
}

/// Returns whether `text` is a media type `type/subtype` without parameters (§4.3.3, schema).
pub(crate) fn is_media_type(text: &str) -> bool {
    let is_part = |part: &str| {
        matches_head_and_tail(
            part,
            1..=usize::MAX,
            |head| head.is_ascii_alphabetic(),
            |tail| tail.is_ascii_alphanumeric() || matches!(tail, b'.' | b'+' | b'_' | b'-'),
        )
    };
    text.split_once('/').is_some_and(|(left, right)| is_part(left) && is_part(right))
}

/// Returns whether `text` is an ISO 15924 script: four letters in title case (§3.3.3, schema).
pub(crate) fn is_script(text: &str) -> bool {
    matches_head_and_tail(text, 4..=4, |head| head.is_ascii_uppercase(), |tail| tail.is_ascii_lowercase())
}

/// Returns whether `text` is a version `N.N.N` with an optional `-suffix` and no build part
/// (§3.4.4, schema).
pub(crate) fn is_version(text: &str) -> bool {
    if text == "1.0.0" {
        return true;
    }
    let (core, suffix) = match text.split_once('-') {
        Some((core, suffix)) => (core, Some(suffix)),
        None => (text, None),
    };
    let mut numbers = core.split('.');
    let has_three_numbers = (0..3).all(|_| {
        numbers.next().is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    });
    has_three_numbers
        && numbers.next().is_none()
        && suffix.is_none_or(|suffix| {
            !suffix.is_empty()
                && suffix.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
        })
}

/// Returns whether `text` is a JWS in compact form: three parts of base64url, joined by dots (§5.4,
/// RFC 7515).
pub(crate) fn is_compact_jws(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let mut parts = text.split('.');
    (0..3).all(|_| parts.next().is_some_and(is_part)) && parts.next().is_none()
}

/// Returns whether `text` is an event filter: an exact type, or a prefix that ends in `*`
/// (§5.3.1.7).
pub(crate) fn is_filter_pattern(text: &str) -> bool {
    !text.strip_suffix('*').unwrap_or(text).contains('*')
}

/// Returns whether `text` is a valid prefix of an extension, as used in `extensions` and before the
/// colon of a type (§7.3).
pub(crate) fn is_prefix(text: &str) -> bool {
    matches_head_and_tail(
        text,
        1..=64,
        |head| head.is_ascii_alphabetic(),
        |tail| tail.is_ascii_alphanumeric() || matches!(tail, b'_' | b'-' | b'.'),
    )
}

/// Returns whether `text` is a prefix that no extension may use (§7.3.2, C-G4).
pub(crate) fn is_reserved_prefix(text: &str) -> bool {
    matches!(text, "aaep" | "xsd" | "rdf" | "rdfs") || text.starts_with('@')
}

/// Returns whether an agent id contains a version, such as `planner-1.4.2` or `planner_v2`, which
/// §3.2.6.1 forbids.
pub(crate) fn contains_version(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().any(u8::is_ascii_digit)
        && (0..bytes.len()).any(|index| {
            let follows_separator =
                index == 0 || matches!(bytes[index - 1], b'-' | b'_' | b'@' | b':' | b'/' | b' ');
            if !follows_separator {
                return false;
            }
            let rest = &bytes[index..];
            let has_v = rest.first().is_some_and(|byte| matches!(byte, b'v' | b'V'));
            let rest = &rest[usize::from(has_v)..];
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let after = rest.get(digits);
            let is_dotted = after == Some(&b'.') && rest.get(digits + 1).is_some_and(u8::is_ascii_digit);
            let ends_at_separator =
                after.is_none_or(|byte| matches!(byte, b'-' | b'_' | b'@' | b':' | b'/' | b' '));
            digits > 0 && (is_dotted || has_v && ends_at_separator)
        })
}

fn matches_head_and_tail(
    text: &str,
    length: std::ops::RangeInclusive<usize>,
    head: impl Fn(u8) -> bool,
    tail: impl Fn(u8) -> bool,
) -> bool {
    let mut bytes = text.bytes();
    length.contains(&text.len()) && bytes.next().is_some_and(head) && bytes.all(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_must_match_completely() {
        let long = format!("evt_{}", "a".repeat(64));
        assert!(is_id("evt_", "evt_8a3F") && is_id("evt_", &long));
        for bad in
            ["evt_", "EVT_a", "evt_a\n", "evt_a-b", " evt_a", "evt_é", &format!("{long}a"), "sess_a", ""]
        {
            assert!(!is_id("evt_", bad), "{bad:?}");
        }
    }

    #[test]
    fn versions_have_three_numbers() {
        assert!(is_version("1.0.0") && is_version("0.1.0-draft") && is_version("1.0.0-a.b-c"));
        for bad in ["1.0", "1.0.0+b", "1.0.0-", "1..0", "v1.0.0", "1.0.0.0", "1.0.0-dräft", ""] {
            assert!(!is_version(bad), "{bad}");
        }
    }

    #[test]
    fn an_agent_id_with_a_version_is_detected() {
        for bad in ["planner-1.4.2", "planner_v2", "planner@3.0", "v2", "a/v2/b", "1.2.3"] {
            assert!(contains_version(bad), "{bad}");
        }
        for good in
            ["planner", "com.example.2fa", "gpt4-helper", "checking-7821", "agent-v", "route-66", "via-2b"]
        {
            assert!(!contains_version(good), "{good}");
        }
    }

    #[test]
    fn tool_names_codes_media_types_and_scripts_follow_their_grammars() {
        assert!(is_tool_name("_a.b-c") && !is_tool_name("1a") && !is_tool_name("a b") && !is_tool_name(""));
        assert!(is_error_code("A1") && !is_error_code("A") && !is_error_code("auth") && !is_error_code("1A"));
        assert!(is_reason("user_x") && !is_reason("User") && !is_reason("u"));
        assert!(is_media_type("text/plain") && !is_media_type("text/plain; charset=utf-8"));
        assert!(!is_media_type("text/3d") && !is_media_type("text/") && !is_media_type("a/b/c"));
        assert!(is_script("Latn") && !is_script("ajami") && !is_script("latn"));
        assert!(
            is_compact_jws("a.b_.c-")
                && !is_compact_jws("a.b")
                && !is_compact_jws("a.b.")
                && !is_compact_jws("a.b.c.d")
        );
        assert!(is_filter_pattern("aaep:agent.*") && is_filter_pattern("*") && !is_filter_pattern("a*b"));
    }
}
