use proptest::prelude::*;

use super::pattern::{KEY_NAMES, KEY_PREFIXES, PASSWORD_NAMES, TOKEN_NAME};
use super::*;
use crate::check::Validator;
use crate::json::Tape;
use crate::rule::{self, Findings, ValidationMode};

/// Returns whether the event check rejects this text.
fn is_rejected(text: &str) -> bool {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let event = format!(r#"{{"type":"aaep:agent.state.changed","summary_normal":"{text}"}}"#);
    let mut tape = Tape::default();
    let doc = tape.read(&event).unwrap();
    let mut findings = Findings::new(ValidationMode::Strict);
    Validator::new().check(&doc, &mut findings);
    findings.list().iter().any(|finding| finding.rule == rule::SECRET)
}

/// Returns at least one example for each secret pattern.
fn examples() -> Vec<(String, SecretKind)> {
    let keys = KEY_PREFIXES.iter().map(|(prefix, min_length)| {
        (format!("{prefix}{}", &"AB12CD34".repeat(4)[..*min_length]), SecretKind::ApiKey)
    });
    let names = PASSWORD_NAMES.iter().chain(&KEY_NAMES).chain(&[TOKEN_NAME]);
    let assignments = names.flat_map(|name| {
        [format!("{name}: hunter22"), format!("{name}=hunter22"), format!("\"{name}\": \"hunter 22\"")]
            .map(|text| (text, SecretKind::Password))
    });
    let others = [
        ("Bearer abcdef123456", SecretKind::BearerToken),
        ("bearer abcdef123456", SecretKind::BearerToken),
        ("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln", SecretKind::SignedToken),
        ("https://ada:lovelace@hub/x", SecretKind::Password),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", SecretKind::PrivateKey),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----", SecretKind::PrivateKey),
        ("4111 1111 1111 1111", SecretKind::CardNumber),
        ("AKIAABCDEFGHIJKLMNOP", SecretKind::ApiKey),
        ("DB_PASSWORD=hunter2", SecretKind::Password),
    ];
    keys.chain(assignments).chain(others.map(|(text, kind)| (text.to_owned(), kind))).collect()
}

#[test]
fn every_pattern_is_found_rejected_and_removed_by_redaction() {
    for (text, kind) in examples() {
        let found: Vec<_> = find_secrets(&text).collect();
        assert_eq!(found.iter().map(|secret| secret.kind).collect::<Vec<_>>(), [kind], "{text}");
        assert!(is_rejected(&text), "{text}");
        let mut clean = text.clone();
        clean.replace_range(found[0].range.clone(), REDACTED);
        assert_eq!(find_secrets(&clean).next(), None, "{clean}");
        assert!(!is_rejected(&clean), "{clean}");
    }
}

#[test]
fn ordinary_words_are_not_secrets() {
    for text in [
        "a risk-free task-1 in desk-top mode",
        "task-12345678901234567890",
        "sk-free is no word",
        "Your password was changed.",
        "Password: changed",
        "Password: required.",
        "Enter the password:",
        "password: ********",
        "password: [redacted]",
        "{\"password\":true}",
        "The secret: patience and time",
        "the secret = of success",
        "3 tokens: one, two, three",
        "Largest token: 128000",
        "User confirmation received (reply_token: rpl_4f8a2e7d9c1b6a3f)",
        "Transfer $500.00 from checking-7821 to savings-3344.",
        "account_id: checking-7821, time: 14:22:24.812Z",
        "2026-05-24 14:22:16",
        "Bearer of good news, and a mask-wearing crowd",
        "https://example.org/a.b?c=d and http://hub:8787/a@b",
        "Set npm_config_cache_v2_folder to a folder",
    ] {
        assert_eq!(find_secrets(text).next(), None, "{text}");
        assert!(!is_rejected(text), "{text}");
    }
}

/// Card numbers that issuers and payment services publish for tests.
const TEST_CARDS: [&str; 46] = [
    // Visa
    "4111111111111111",
    "4242424242424242",
    "4012888888881881",
    "4000056655665556",
    "4222222222222",
    // Mastercard
    "5555555555554444",
    "5105105105105100",
    "5200828282828210",
    "2223003122003222",
    "2720992593319364",
    // American Express
    "378282246310005",
    "371449635398431",
    "378734493671000",
    "343434343434343",
    // Discover
    "6011111111111117",
    "6011000990139424",
    "6011981111111113",
    "6445644564456445",
    // Diners Club
    "30569309025904",
    "38520000023237",
    "36227206271667",
    "3056930009020004",
    // JCB
    "3530111333300000",
    "3566002020360505",
    "3569990010095841",
    // UnionPay
    "6200000000000005",
    "6200000000000047",
    "6205500000000000004",
    "6250941006528599",
    // Maestro, Bancontact
    "6759649826438453",
    "6799990100000000019",
    "6771798021000008",
    "6703444444444449",
    "5000550000000029",
    // Dankort, Bankcard, Switch
    "5019717010103742",
    "5610591081018250",
    "6331101999990016",
    // Elo, Hipercard
    "5066991111111118",
    "6362970000457013",
    "6062826786276634",
    // Mir, Troy, Verve, DinaCard, Carte Bancaire
    "2200000000000004",
    "9792030394440796",
    "5060990580000217499",
    "6555900000604105",
    "4035501000000008",
    "4360000001000005",
];

/// Returns the common ways of writing a number.
fn written_forms(number: &str) -> Vec<String> {
    let in_groups = |sizes: &[usize], separator: &str| {
        let (mut rest, mut groups) = (number, Vec::new());
        for size in sizes.iter().chain(std::iter::repeat(&4)) {
            if rest.is_empty() {
                break;
            }
            let (group, after) = rest.split_at((*size).min(rest.len()));
            groups.push(group);
            rest = after;
        }
        groups.join(separator)
    };
    let issuer_groups: &[usize] = if number.len() < 16 { &[4, 6, 5] } else { &[] };
    let mut all = vec![number.to_owned(), in_groups(&[1; 19], " ")];
    for separator in [" ", "-"] {
        all.extend([in_groups(issuer_groups, separator), in_groups(&[4; 5], separator)]);
    }
    all
}

#[test]
fn the_test_card_numbers_of_all_issuers_are_found() {
    for number in TEST_CARDS {
        for number in written_forms(number) {
            for text in [format!("Card {number}."), format!("no.{number}, please"), format!("ID-{number}")] {
                let found: Vec<_> = find_secrets(&text).map(|secret| &text[secret.range]).collect();
                assert_eq!(found, [number.as_str()], "{text}");
                assert!(is_rejected(&text), "{text}");
            }
        }
    }
}

#[test]
fn cards_among_other_numbers_are_found() {
    for (text, cards) in [
        ("6 4111 1111 1111 1111 6", &["4111 1111 1111 1111"] as &[_]),
        ("12 6 4111-1111-1111-1111 9 euro", &["4111-1111-1111-1111"]),
        ("4111 1111 1111 1111 5500 0000 0000 0004", &["4111 1111 1111 1111 5500 0000 0000 0004"]),
        ("4111111111111111 and 378282246310005!", &["4111111111111111", "378282246310005"]),
    ] {
        let found: Vec<_> = find_secrets(text).map(|secret| &text[secret.range]).collect();
        assert_eq!(found, cards);
    }
}

#[test]
fn numbers_that_are_not_card_numbers_pass() {
    for text in [
        "4111 1111 1111 1112 fails its check",
        "4111111111111111af is the start of a hash",
        "004111111111111111 is another number",
        "0.4111111111111111",
        "0000 0000 0000 0000",
        "Rooms 21 34 55 89 144 233 377 610 987 are free",
        "Lot 41 11 11 11 11 11 11 11",
        "Order 1234567890123456 shipped, order 79927398713, order 100000000000008",
        "Call 030 1234567 in Berlin, +49 170 12345678, +41 11 11 11 11 11 11 11 1, 0041 44 668 18 00",
        "+4111111111111111",
    ] {
        assert_eq!(find_secrets(text).next(), None, "{text}");
        assert!(!is_rejected(text), "{text}");
    }
}

proptest! {
    /// Seconds, milliseconds, microseconds and nanoseconds from 2001 to 2039.
    #[test]
    fn timestamps_pass(nanos in 1_000_000_000_000_000_000_u64..2_190_000_000_000_000_000) {
        for unit in [1, 1_000, 1_000_000, 1_000_000_000] {
            let text = format!("It is {} now, event-{}", nanos / unit, nanos / unit);
            prop_assert_eq!(find_secrets(&text).next(), None, "{}", text);
        }
    }

    /// Phone numbers (E.164), with a plus sign, bare, or in groups.
    #[test]
    fn phone_numbers_pass(
        code in "1|20|27|3[0-4]|36|39|4[013-9]|42[013]|5[1-8]|6[0-6]|7|8[1246]|9[0-58]|35[0-9]|97[0-9]",
        rest in "[1-9][0-9]{6,9}", trunk in "[1-9][0-9]{2}",
    ) {
        for text in [
            format!("Call +{code}{rest}"),
            format!("Call +{code}{trunk}{rest}"),
            format!("Call {code}{rest}"),
            format!("Call +{code} {trunk} {rest}"),
            format!("Call {code}-{trunk}-{rest}"),
        ] {
            prop_assert_eq!(find_secrets(&text).next(), None, "{}", text);
        }
    }

    /// The event check and the search agree about every text.
    #[test]
    fn exactly_the_found_secrets_are_rejected(text in TEXT_PATTERN) {
        prop_assert_eq!(is_rejected(&text), find_secrets(&text).next().is_some(), "{}", text);
    }

    /// No secret starts at a byte that the search skips.
    #[test]
    fn the_search_agrees_with_a_check_of_every_byte(text in TEXT_PATTERN) {
        let (mut expected, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let found = secret_at(&text, at);
            at = found.as_ref().map_or(at + 1, |secret| secret.range.end);
            expected.extend(found);
        }
        prop_assert_eq!(find_secrets(&text).collect::<Vec<_>>(), expected, "{}", text);
    }

    /// Every secret has a hint byte, so a text without hints need not be searched.
    #[test]
    fn every_secret_has_a_hint_byte(text in TEXT_PATTERN) {
        let found = (0..text.len()).find_map(|at| secret_at(&text, at));
        prop_assert!(SecretHints::of(text.as_bytes()).may_contain_secret() || found.is_none(), "{}", text);
    }
}

const TEXT_PATTERN: &str = "(password|api key|secret|token|[Bb]earer |sk-|pk-|xoxr-|ghp_|hf_|sayso_|AKIA|ASIA|AIza|eyJ|[ .:=/@\"'-]{1,2}\
    |://|-----BEGIN |PRIVATE KEY|4111 ?1111 ?|[0-9]{1,8}|[A-Za-z_]{1,12}|[A-Z0-9]{16}|[éß٣_]|passwd|pwd|auth_token|client_secret|whsec_|npm_|glpat-|PassWord){0,10}";
