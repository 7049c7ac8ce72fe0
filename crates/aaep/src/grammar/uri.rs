//! URIs (RFC 3986) with a scheme; relative references are not URIs.

/// Returns whether `text` is a URI according to RFC 3986.
///
/// ```
/// assert!(aaep::grammar::is_uri("https://example.org/a?b#c"));
/// assert!(aaep::grammar::is_uri("queue://customer-service/advisor"));
/// assert!(!aaep::grammar::is_uri("/relative/path"));
/// ```
pub fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_valid_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    let (rest, fragment) = split_at_delimiter(rest, '#');
    let (hierarchy, query) = split_at_delimiter(rest, '?');
    is_valid_scheme
        && fragment.is_none_or(|part| consists_of(part, |byte| is_pchar(byte) || matches!(byte, b'/' | b'?')))
        && query.is_none_or(|part| consists_of(part, |byte| is_pchar(byte) || matches!(byte, b'/' | b'?')))
        && match hierarchy.strip_prefix("//") {
            Some(rest) => {
                let (authority, path) = match rest.find('/') {
                    Some(index) => rest.split_at(index),
                    None => (rest, ""),
                };
                is_authority(authority) && is_path(path)
            }
            None => is_path(hierarchy),
        }
}

fn split_at_delimiter(text: &str, delimiter: char) -> (&str, Option<&str>) {
    match text.split_once(delimiter) {
        Some((left, right)) => (left, Some(right)),
        None => (text, None),
    }
}

fn is_path(path: &str) -> bool {
    consists_of(path, |byte| is_pchar(byte) || byte == b'/')
}

fn is_authority(authority: &str) -> bool {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", authority),
    };
    let is_valid_user = consists_of(user, |byte| is_unreserved(byte) || is_sub_delim(byte) || byte == b':');
    is_valid_user
        && if let Some(literal) = host.strip_prefix('[') {
            literal.split_once(']').is_some_and(|(inside, after)| {
                is_ip_literal(inside) && (after.is_empty() || after.strip_prefix(':').is_some_and(is_port))
            })
        } else {
            let (name, port) = split_at_delimiter(host, ':');
            consists_of(name, |byte| is_unreserved(byte) || is_sub_delim(byte)) && port.is_none_or(is_port)
        }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_ip_literal(text: &str) -> bool {
    match text.strip_prefix(['v', 'V']) {
        Some(future) => future.split_once('.').is_some_and(|(version, rest)| {
            !version.is_empty()
                && version.bytes().all(|byte| byte.is_ascii_hexdigit())
                && !rest.is_empty()
                && rest.bytes().all(|byte| is_unreserved(byte) || is_sub_delim(byte) || byte == b':')
        }),
        None => text.parse::<std::net::Ipv6Addr>().is_ok(),
    }
}

/// Returns whether every byte is allowed and every `%` precedes two hexadecimal digits.
fn consists_of(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().all(|(index, byte)| match byte {
        b'%' => bytes.get(index + 1..index + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit)),
        other => allowed(*other),
    })
}

fn is_pchar(byte: u8) -> bool {
    is_unreserved(byte) || is_sub_delim(byte) || matches!(byte, b':' | b'@')
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn is_sub_delim(byte: u8) -> bool {
    matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=')
}

#[cfg(test)]
mod tests {
    use super::is_uri;

    #[test]
    fn uris_follow_rfc_3986() {
        for good in [
            "https://example.com/.well-known/aaep-manifest.json",
            "urn:sayso:context:v1",
            "queue://customer-service/financial-advisor",
            "mailto:a@b.example",
            "http://[::1]:8080/x?y=%20#z",
            "http://user:pw@host:80",
            "file:///etc/x",
            "a:",
        ] {
            assert!(is_uri(good), "{good}");
        }
        for bad in [
            "",
            "/x",
            "example.org",
            "https://a b",
            "1a:x",
            "https://a/%2",
            "https://a/\n",
            "http://[::g]/",
            "é:x",
            "https://a/<x>",
            "http://a:b",
            "://x",
            "http://a#b#c",
        ] {
            assert!(!is_uri(bad), "{bad}");
        }
    }
}
