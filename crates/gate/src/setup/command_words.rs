//! Command lines in configuration files: quoting for a shell, and splitting again.

/// Makes a command line of a hook refuse the call if sayso is killed, crashes or is missing. Any shell understands it.
pub(crate) const REFUSE_ON_FAILURE: &str =
    r#" || sh -c 'echo "Not permitted: sayso could not run." >&2; exit 2'"#;

/// Returns a command line for a POSIX shell.
pub(crate) fn join_words<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Splits a command line as a POSIX shell does. Returns `None` if the line contains anything
/// other than plain and quoted words: a line with variables, pipes or comments does more than start one program.
pub(crate) fn split_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let text = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '\'' => break,
                        other => text.push(other),
                    }
                }
            }
            '"' => {
                let text = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '"' => break,
                        '$' | '`' => return None,
                        '\\' => match characters.next()? {
                            escaped @ ('"' | '\\' | '$' | '`') => text.push(escaped),
                            other => text.extend(['\\', other]),
                        },
                        other => text.push(other),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(characters.next()?),
            '$' | '`' | '|' | '&' | ';' | '<' | '>' | '(' | ')' | '*' | '?' | '[' | '~' | '\n' => {
                return None;
            }
            '#' if word.is_none() => return None,
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

/// Returns whether a word is the path or name of the program `sayso`.
pub(crate) fn is_sayso(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    matches!(name, "sayso" | "sayso.exe")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(testing::property::cases(500))]
        #[test]
        fn joined_words_split_into_the_same_words(words in prop::collection::vec("[ -~é\n]{0,8}", 0..5)) {
            let line = join_words(words.iter().map(String::as_str));
            prop_assert_eq!(split_words(&line), Some(words));
        }
    }

    #[test]
    fn command_lines_that_do_more_than_start_a_program_are_not_split() {
        for line in
            ["sayso hook claude | tee log", "sayso $X", "sayso `x`", "a; b", "'open", "\"open", "# x", "a\\"]
        {
            assert_eq!(split_words(line), None, "{line}");
        }
        assert_eq!(
            split_words("\"a b\" 'c d' e\\ f \"\\\"\\x\""),
            Some(vec!["a b".into(), "c d".into(), "e f".into(), "\"\\x".into()])
        );
    }

    #[test]
    fn the_program_is_recognised_by_its_name() {
        for (word, expected) in [
            ("sayso", true),
            ("/usr/bin/sayso", true),
            ("C:\\x\\sayso.exe", true),
            ("sayso2", false),
            ("/sayso/x", false),
        ] {
            assert_eq!(is_sayso(word), expected, "{word}");
        }
    }
}
