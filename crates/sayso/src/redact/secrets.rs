//! The default redactor.

use std::borrow::Cow;

use aaep::secret::{REDACTED, find_secrets};

use super::Redact;

/// Removes keys, tokens, passwords and card numbers: everything that [`aaep::secret`] finds and a hub would reject. It is the
/// default redactor of a hub.
///
/// ```
/// use sayso::{Redact, SecretRedactor};
/// let (text, count) = SecretRedactor.redact("The task-1 is risk-free; password: hunter2, card 4111 1111 1111 1111.");
/// assert_eq!(text, "The task-1 is risk-free; password: [redacted], card [redacted].");
/// assert_eq!(count, 2);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SecretRedactor;

impl Redact for SecretRedactor {
    fn redact<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
        let mut out = String::new();
        let (mut from, mut count) = (0, 0);
        for secret in find_secrets(text) {
            out.push_str(text.get(from..secret.range.start).unwrap_or_default());
            out.push_str(REDACTED);
            (from, count) = (secret.range.end, count + 1);
        }
        if count == 0 {
            return (text.into(), 0);
        }
        out.push_str(text.get(from..).unwrap_or_default());
        (out.into(), count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{CountingRedactor, StreamRedactor};
    use super::*;

    /// Returns Luhn's check digit for these digits.
    fn check_digit(digits: &[u32]) -> u32 {
        let sum: u32 = digits
            .iter()
            .rev()
            .enumerate()
            .map(|(at, digit)| if at % 2 == 0 { digit * 2 / 10 + digit * 2 % 10 } else { *digit })
            .sum();
        (10 - sum % 10) % 10
    }

    fn redact(text: &str) -> String {
        SecretRedactor.redact(text).0.into_owned()
    }

    #[test]
    fn secrets_are_replaced() {
        for (text, expected) in [
            ("key sk-abcdefghij1234567890XYZ.", "key [redacted]."),
            ("ghp_0123456789abcdefghij0123456789abcdef", "[redacted]"),
            ("AKIAIOSFODNN7EXAMPLE is it", "[redacted] is it"),
            ("Authorization: Bearer abcdef1234567890", "Authorization: Bearer [redacted]"),
            ("Password: hunter2.", "Password: [redacted]."),
            (r#"{"password": "a b c"}"#, r#"{"password": "[redacted]"}"#),
            ("api_key=abc123def, rest", "api_key=[redacted], rest"),
            ("API key: abc123def", "API key: [redacted]"),
            ("http://me:pa55@hub/x", "http://me:[redacted]@hub/x"),
            ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl ok", "[redacted] ok"),
            ("4111-1111-1111-1111", "[redacted]"),
            ("4111 1111 1111 1111 77 euro", "[redacted] 77 euro"),
            ("6 4111 1111 1111 1111", "6 [redacted]"),
            ("6 4111 1111 1111 1111 6", "6 [redacted] 6"),
            ("12 6 4111-1111-1111-1111 9 euro", "12 6 [redacted] 9 euro"),
            ("Order 99 4111111111111111 0", "Order 99 [redacted] 0"),
            ("ref 3782 822463 10005", "ref [redacted]"),
            ("4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "[redacted]"),
            ("4111 1111 1111 1111 5500 0000 0000 0004", "[redacted]"),
            ("Card 4111 1111 1111 1111 and 378282246310005!", "Card [redacted] and [redacted]!"),
            ("x -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- y", "x [redacted] y"),
        ] {
            assert_eq!(redact(text), expected);
        }
    }

    #[test]
    fn text_without_secrets_is_unchanged() {
        for text in [
            "This is risk-free.",
            "task-1 and task-12345678901234567890",
            "The bearer of good news",
            "Bearer bonds are old-fashioned",
            "The password is wrong.",
            "Reset your password in the settings.",
            "3 tokens: one, two, three",
            "The secret: patience and time",
            "sk-free is no word",
            "4111 1111 1111 1112 fails its check",
            "It is 1731693600000 now, order 1234567890123",
            "Rooms 21 34 55 89 144 233 377 610 987 are free",
            "4111111111111111af is the start of a hash",
            "0000 0000 0000 0000",
            "Ask at http://hub:8787/a@b",
            "Call 030 1234567 in Berlin, Ọjọ́ dára.",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    /// Redacts a text in pieces and returns the concatenated result.
    fn redact_in_pieces(text: &str, cuts: &[usize]) -> String {
        let redactor = CountingRedactor::new(std::sync::Arc::new(SecretRedactor));
        let (mut stream, mut out, mut rest) = (StreamRedactor::default(), String::new(), text);
        for cut in cuts {
            let at = rest.char_indices().nth(*cut).map_or(rest.len(), |(at, _)| at);
            let (piece, after) = rest.split_at(at);
            out.push_str(&stream.push(piece, false, &redactor));
            rest = after;
        }
        out.push_str(&stream.push(rest, true, &redactor));
        out
    }

    #[test]
    fn a_long_private_key_in_pieces_is_one_secret() {
        let body = "MIIEowIBAAKCAQEA0123456789\n".repeat(1000);
        let text = format!(
            "x -----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY----- y \"password\": \"a b c\" z"
        );
        let redacted = redact_in_pieces(&text, &vec![7; 5000]);
        assert!(redacted == "x [redacted] y \"password\": \"[redacted]\" z", "{} bytes", redacted.len());
    }

    #[test]
    fn a_number_after_a_combining_mark_is_held_back_until_it_is_complete() {
        let text = "Ọjọ\u{301}6 4111 1111 1111 1111 ";
        assert_eq!(redact_in_pieces(text, &[6]), redact(text));
    }

    #[test]
    fn a_quoted_password_with_a_key_name_in_it_is_one_secret_in_pieces() {
        let text = "password: \"my token: \" end";
        assert_eq!(redact_in_pieces(text, &[22]), redact(text));
    }

    proptest! {
        /// Every Visa number with a correct check digit is removed, however it is grouped. A number with a wrong check digit is not
        /// removed.
        #[test]
        fn a_card_is_recognised_by_its_check_digit(
            body in proptest::collection::vec(0_u32..10, 14), separator in "[ -]?"
        ) {
            let digits = [&[4], body.as_slice()].concat();
            let correct = check_digit(&digits);
            for (digit, is_redacted) in [(correct, true), ((correct + 1) % 10, false)] {
                let all = [digits.as_slice(), &[digit]].concat();
                let groups: Vec<String> = all.chunks(4)
                    .map(|group| group.iter().filter_map(|digit| char::from_digit(*digit, 10)).collect()).collect();
                let number = groups.join(&separator);
                prop_assert_eq!(redact(&format!("Card {number}.")) == "Card [redacted].", is_redacted, "{}", number);
            }
        }

        /// No digit of a card remains, whatever digits surround it and however the text is split.
        #[test]
        fn a_card_among_other_digits_is_found(
            before in "([0-9]{1,6}[ -]){0,4}", issuer in "4[0-9]{3}|5[1-5][0-9]{2}|6011|22[3-9][0-9]",
            body in "[0-9]{11}", gap in "[ -]?", after in "([ -][0-9]{1,6}){0,4}",
            cuts in proptest::collection::vec(0_usize..9, 0..40),
        ) {
            let digits: Vec<u32> = format!("{issuer}{body}").chars().filter_map(|digit| digit.to_digit(10)).collect();
            let all = format!("{issuer}{body}{}", check_digit(&digits));
            let groups: Vec<&str> = (0..4).filter_map(|at| all.get(at * 4..at * 4 + 4)).collect();
            let number = groups.join(&gap);
            let text = format!("Pay {before}{number}{after} now");
            let card = 4 + before.len()..4 + before.len() + number.len();
            let is_redacted = find_secrets(&text)
                .any(|secret| secret.range.start <= card.start && card.end <= secret.range.end);
            prop_assert!(is_redacted, "{}", redact(&text));
            prop_assert_eq!(redact_in_pieces(&text, &cuts), redact(&text));
        }

        /// Redacted text passes event validation, which uses the same secret patterns.
        #[test]
        fn redacted_text_contains_no_secret(
            text in "(password: |api_key=|token: |sk-|pk-|hf_|Bearer |4111 ?1111 ?|[a-z0-9]{1,20}|[ .,:=\"'-]){0,10}"
        ) {
            prop_assert_eq!(find_secrets(&redact(&text)).next(), None, "{}", text);
        }

        /// Redacting twice gives the same as redacting once.
        #[test]
        fn redaction_is_idempotent(text in "(password[:=] ?|Bearer |sk-|4111 ?1111 ?|[a-z0-9 ,.:é]{0,8}){0,12}") {
            let once = redact(&text);
            prop_assert_eq!(redact(&once), once);
        }

        /// The result does not depend on how the text is split.
        #[test]
        fn pieces_are_redacted_like_the_whole_text(
            text in "(password: |password=|Bearer |api key = |[a-z0-9]{1,12} |4111 1111 1111 1111 |sk-[a-z0-9]{24} |token: \"|'|\" |Ọjọ́. ){0,8}",
            cuts in proptest::collection::vec(0_usize..9, 0..40),
        ) {
            prop_assert_eq!(redact_in_pieces(&text, &cuts), redact(&text));
        }
    }
}
