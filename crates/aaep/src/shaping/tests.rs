//! Tests of text boundaries in several languages.

use super::code_spans::CodeContext;
use super::text_boundaries::{CutGranularity, CutSearch, PendingText};

/// Splits a text and joins the parts with `|`.
fn cut(text: &str, granularity: CutGranularity, language: &str) -> String {
    let mut parts = Vec::new();
    let mut rest = text;
    while let CutSearch::At(at) =
        (PendingText { text: rest, context: CodeContext::default(), language, is_ended: true })
            .first_cut(granularity)
    {
        parts.push(&rest[..at]);
        rest = &rest[at..];
    }
    parts.push(rest);
    parts.join("|")
}

/// Asserts that each text is split exactly at its `|` marks.
fn assert_cuts(granularity: CutGranularity, language: &str, texts: &[&str]) {
    for expected in texts {
        assert_eq!(cut(&expected.replace('|', ""), granularity, language), *expected, "{language}");
    }
}

#[test]
fn english_sentences_are_split() {
    assert_cuts(
        CutGranularity::Sentence,
        "en-US",
        &[
            "3.14 is pi. |Next",
            "Done. |Sent. |Next",
            "It costs $3.50 today. |It was $1,000.50 before.",
            "Dr. Smith met Mr. Jones and Mrs. Brown. |They talked.",
            "Use a tool, e.g. Hammer. |Or i.e. This one.",
            "The U.S. Army. |Hm",
            "J. R. R. Tolkien wrote it. |Yes.",
            "See https://example.org/a.b?c=d&e=1.2! |Then write to a.b@example.org. |Bye.",
            "Version 1.2.3 is out. |So is v2.0.",
            "He said \"Go.\" |Then he left. |(Really!) |Yes?",
            "Wait... what? |Well... |What",
            "Really?! |Yes!!! |Ok",
            "No. |Then see No. 5 and Fig. 3. |End",
            "1. First\n|2. Second",
            "A line that\ngoes on. |Next",
            "# Title\n|Text begins. |Here",
            "Run `a. B` now. |Then `x? Y`. |End",
            "Before.\n|```\nlet a = 1. Two\n\nB. C\n```\n|After. |End",
            "Etc. and so on, etc. |The end",
            "The file main.rs is there. |Open config.toml!",
            "😀 Nice. |👩‍👩‍👧 Family. |End",
            "Done.\n\n|Next.   |Two",
        ],
    );
}

#[test]
fn spanish_sentences_are_split() {
    assert_cuts(
        CutGranularity::Sentence,
        "es",
        &[
            "El Sr. García y la Sra. López llegaron. |¿Quién es? |¡Nadie!",
            "Vive en EE. UU. Hoy trabaja. |Sí.",
            "Son 3,50 €. |Ud. Paga.",
            "Use p. ej. Madrid. |Fin.",
        ],
    );
}

#[test]
fn german_sentences_are_split() {
    assert_cuts(
        CutGranularity::Sentence,
        "de-DE",
        &[
            "Das ist z. B. Berlin. |Oder z.B. Hamburg. |Ende",
            "Am 3. Mai kam Dr. Weber. |Er blieb bis zum 12. Juni. |Gut.",
            "Es war 1990. |Danach nicht.",
            "Hr. Müller, d. h. Karl, kommt. |„Wirklich?“ |Ja.",
        ],
    );
}

#[test]
fn yoruba_sentences_are_split() {
    assert_cuts(
        CutGranularity::Sentence,
        "yo",
        &[
            "Mo ń wá ìròyìn náà. |Ó ti parí, ẹ ṣé. |Èwo ni ẹ fẹ́? |Mo fẹ́ràn rẹ̀. |Ẹ kú àárọ̀",
            "Mo rí ọ. |Ó dára.",
        ],
    );
}

#[test]
fn chinese_and_japanese_sentences_are_split() {
    assert_cuts(
        CutGranularity::Sentence,
        "zh",
        &[
            "你好。|今天天气很好！|你要去吗？|好的",
            "他说：“走吧。”|然后他走了。|完",
            "价格是3.5元。|很便宜。",
        ],
    );
    assert_cuts(CutGranularity::Sentence, "ja", &["終わりです。|次へ。|はい"]);
}

#[test]
fn hindi_sentences_are_split() {
    assert_cuts(CutGranularity::Sentence, "hi", &["मैं आ रहा हूँ। |आप कैसे हैं? |डॉ. शर्मा यहाँ हैं। |ठीक॥ |अच्छा"]);
}

#[test]
fn arabic_sentences_are_split() {
    assert_cuts(
        CutGranularity::Sentence,
        "ar",
        &["جارٍ البحث. |أي حساب تقصد؟ |د. أحمد هنا. |تم الأمر!", "یہ ہے۔ |ٹھیک"],
    );
}

#[test]
fn words_keep_their_punctuation_and_are_not_split_inside() {
    assert_cuts(
        CutGranularity::Word,
        "en",
        &[
            "Hello, |world! |It's |3.14 |or |well-known; |see |https://a.b/c?d=e |now",
            "Run |`a b` |now",
            "👩‍👩‍👧 |family",
        ],
    );
    assert_cuts(CutGranularity::Word, "zh", &["你|好，|世|界。|再|见"]);
}

#[test]
fn paragraphs_end_with_a_blank_line() {
    assert_cuts(
        CutGranularity::Paragraph,
        "en",
        &["One. Two.\nThree.\n\n|Four.\r\n\r\n|Five\n \n\n|Six", "Text\n\n|```\na\n\nb\n```\n\n|End"],
    );
    assert_cuts(CutGranularity::Completion, "en", &["One.\n\nTwo."]);
}

#[test]
fn a_cut_is_found_only_when_no_following_text_can_change_it() {
    let first_cut = |text| {
        PendingText { text, context: CodeContext::default(), language: "en", is_ended: false }
            .first_cut(CutGranularity::Sentence)
    };
    for undecided in
        ["Done", "Done.", "Done. ", "Done. (", "Done. 5", "It is $3.", "Run `a. B", "```\na. B\n"]
    {
        assert!(matches!(first_cut(undecided), CutSearch::Nothing { .. }), "{undecided}");
    }
    assert_eq!(first_cut("Done. N"), CutSearch::At(6));
    assert_eq!(first_cut("Done. (N"), CutSearch::At(6));
    assert_eq!(first_cut("Done. (n"), CutSearch::Nothing { needs_boundary_character: true });
    assert_eq!(first_cut("Run `a. B` now"), CutSearch::Nothing { needs_boundary_character: true });
}

/// Numbers, amounts, dates, times, versions, addresses, paths and abbreviations, in each language.
const UNDIVIDED_TOKENS: &[(&str, &[&str])] = &[
    (
        "en",
        &[
            "e.g.",
            "i.e.",
            "10:30 a.m.",
            "5 p.m.",
            "Mr.",
            "Mrs.",
            "U.S.",
            "No. 5",
            "Fig. 3",
            "Nov. 18",
            "approx.",
            "$1,234.56",
            "J. R. R.",
            "St.",
            "vs.",
        ],
    ),
    (
        "es",
        &[
            "p. ej.",
            "Sr.",
            "Sra.",
            "Ud.",
            "EE. UU.",
            "S.A.",
            "núm. 5",
            "pág. 7",
            "dic. 18",
            "1.234,56 €",
            "10:30 a. m. en",
        ],
    ),
    ("yo", &["Ọ̀gb.", "Ọ̀gbẹ́ni.", "Alh.", "₦1,234.56"]),
    ("de", &["z. B.", "z.B.", "d. h.", "Hr.", "am 3. Mai", "1.234,56 €"]),
];
const UNDIVIDED_EVERYWHERE: &[&str] = &[
    "3.14",
    "-0.5",
    "1.234.567",
    "50.5%",
    "v1.2.3",
    "1.2.3-rc.1",
    "2026-11-18",
    "18.11.2026",
    "10:30",
    "10.30",
    "192.168.0.1",
    "[::1]:80",
    "https://example.org",
    "https://a.example.org/b.c?d=e.f&g=!h#i.J",
    "a.b@example.org",
    "/etc/a.b",
    "~/.bashrc",
    "../x/y.tar.gz",
    r"C:\Users\a.b",
    "Node.js",
    ".env",
    "main.rs",
    "Dr.",
    "Prof.",
];

proptest::proptest! {
    #![proptest_config(testing::property::cases(600))]

    /// Wherever the text is divided, no token is cut and every sentence is found.
    #[test]
    fn tokens_with_stops_are_never_cut(
        language_index in 0..UNDIVIDED_TOKENS.len(),
        token_indices in proptest::collection::vec(proptest::prelude::any::<proptest::sample::Index>(), 1..4),
        words in proptest::collection::vec(proptest::sample::select(vec!["see", "Lagos", "pay", "Ben", "5", "(now)", "ọjà", "Ödön"]), 1..5),
    ) {
        let (language, own) = UNDIVIDED_TOKENS[language_index];
        let tokens: Vec<&str> = own.iter().chain(UNDIVIDED_EVERYWHERE).copied().collect();
        let sentences: Vec<String> = token_indices
            .iter()
            .map(|index| format!("Look {} {} {} today. ", words.join(" "), index.get(&tokens), words.join(" ")))
            .chain(["End".to_owned()])
            .collect();
        let text = sentences.concat();
        proptest::prop_assert_eq!(cut(&text, CutGranularity::Sentence, language), sentences.join("|"));
        let first_end = sentences[0].len();
        for (at, _) in text.char_indices() {
            let pending = PendingText { text: &text[..at], context: CodeContext::default(), language, is_ended: false };
            let found = pending.first_cut(CutGranularity::Sentence);
            if let CutSearch::At(found) = found {
                proptest::prop_assert_eq!(found, first_end, "{:?} in {}", &text[..at], language);
            }
        }
    }
}
