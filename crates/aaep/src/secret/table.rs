//! The table of secret patterns as JSON, for clients in other languages.

use super::card::ISSUERS;
use super::pattern::{
    AWS_KEY_PREFIX, BEARER, KEY_NAMES, KEY_PREFIXES, MAX_DECIDING_BYTES, NON_SECRET_WORDS, PASSWORD_NAMES,
    PEM_BEGIN, PEM_END, TOKEN_NAME, WEB_TOKEN_PREFIX,
};
use super::{REDACTED, find_secrets};
use crate::json::{self, JsonWriter};

/// Texts that show each pattern, and texts without secrets. The table also contains their redacted forms.
const EXAMPLES: [&str; 44] = [
    "key sk-abcdefghij1234567890XYZ.",
    "pk-abcdefghij1234567890 and rk-abcdefghij1234567890",
    "sk_live_abc1234567 sk_test_abc1234567 rk_live_abc1234567",
    "whsec_0123456789abcdef",
    "ghp_0123456789abcdefghij0123456789abcdef",
    "github_pat_0123456789abcdef glpat-0123456789abcdef",
    "npm_0123456789abcdefghij0123456789ab hf_0123456789abcdef",
    "xoxb-1234567abc xoxp-1234567abc",
    "AKIAIOSFODNN7EXAMPLE is it",
    "AKIAABCDEFGHIJKLMNOP",
    "ASIA0123456789ABCDEF",
    "AIza0123456789abcdefghij0123456789ab",
    "sayso_0123456789abcdef",
    "Authorization: Bearer abcdef1234567890",
    "Password: hunter2.",
    r#"{"password": "a b c"}"#,
    "DB_PASSWORD=hunter2",
    "passwd=hunter22, pwd: hunter22; passphrase: 'my long one'",
    "api_key=abc123def, rest",
    "API key: abc123def",
    "secret=abcd, client_secret: 12345678",
    "token: abc123 and reply_token: abc123",
    "http://me:pa55@hub/x",
    "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl ok",
    "4111-1111-1111-1111",
    "4111 1111 1111 1111 77 euro",
    "12 6 4111-1111-1111-1111 9 euro",
    "ref 3782 822463 10005",
    "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
    "4111 1111 1111 1111 5500 0000 0000 0004",
    "Card 4222222222222, 30569309025904, 6205500000000000004!",
    "x -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- y",
    "a risk-free task-1 in desk-top mode",
    "task-12345678901234567890",
    "The bearer of good news",
    "The password is wrong. Password: required.",
    "password: ******** or password: [redacted]",
    "3 tokens: one, two, three",
    "The secret: patience and time",
    "Largest token: 128000",
    "4111 1111 1111 1112 fails its check",
    "It is 1731693600000 now, order 1234567890123",
    "Call 030 1234567 in Berlin, +49 170 12345678, Ọjọ́ dára.",
    "Ask at http://hub:8787/a@b",
];

/// Returns the table of secret patterns as compact JSON, with examples and their redacted forms.
///
/// ```
/// assert!(aaep::secret::table().contains("key_prefixes"));
/// ```
pub fn table() -> String {
    json::write_object(|writer| {
        writer.key("replacement").text(REDACTED);
        writer.key("max_deciding_bytes").integer(i64::try_from(MAX_DECIDING_BYTES).unwrap_or(i64::MAX));
        writer.key("key_prefixes").array(|writer| {
            for (prefix, min_length) in KEY_PREFIXES {
                writer.object(|writer| {
                    writer.key("prefix").text(prefix);
                    writer.key("min_length").integer(i64::try_from(min_length).unwrap_or(i64::MAX));
                    writer.key("uppercase").integer(i64::from(prefix == AWS_KEY_PREFIX));
                });
            }
        });
        write_names(writer, "password_names", &PASSWORD_NAMES);
        write_names(writer, "key_names", &KEY_NAMES);
        writer.key("token_name").text(TOKEN_NAME);
        write_names(writer, "non_secret_words", &NON_SECRET_WORDS);
        writer.key("bearer").text(BEARER);
        writer.key("web_token_prefix").text(WEB_TOKEN_PREFIX);
        writer.key("pem_begin").text(PEM_BEGIN);
        writer.key("pem_end").text(PEM_END);
        writer.key("issuers").array(|writer| {
            for issuer in &ISSUERS {
                writer.object(|writer| {
                    writer.key("min_digits").integer(i64::try_from(issuer.min_digits).unwrap_or(i64::MAX));
                    writer.key("max_digits").integer(i64::try_from(issuer.max_digits).unwrap_or(i64::MAX));
                    writer.key("prefixes").array(|writer| {
                        for (first, last) in issuer.prefixes {
                            writer.array(|writer| {
                                writer.integer(i64::from(*first));
                                writer.integer(i64::from(*last));
                            });
                        }
                    });
                });
            }
        });
        writer.key("examples").array(|writer| {
            for text in EXAMPLES {
                writer.object(|writer| {
                    writer.key("text").text(text);
                    writer.key("redacted").text(&redact(text));
                });
            }
        });
    })
}

fn write_names(writer: &mut JsonWriter, key: &str, names: &[&str]) {
    writer.key(key).array(|writer| names.iter().for_each(|name| writer.text(name)));
}

fn redact(text: &str) -> String {
    let (mut out, mut from) = (String::new(), 0);
    for secret in find_secrets(text) {
        out.push_str(text.get(from..secret.range.start).unwrap_or_default());
        out.push_str(REDACTED);
        from = secret.range.end;
    }
    out + text.get(from..).unwrap_or_default()
}
