//! Where text is cut, language by language.

use super::code::Context;
use super::cut::{Found, Grain, Waiting};

/// The pieces into which a whole text is cut, with a bar between them.
fn cut(text: &str, grain: Grain, language: &str) -> String {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Found::At(at) =
        (Waiting { text: rest, context: Context::default(), language, ended: true }).first(grain)
    {
        pieces.push(&rest[..at]);
        rest = &rest[at..];
    }
    pieces.push(rest);
    pieces.join("|")
}

/// Texts with bars where they should be cut.
fn expect(grain: Grain, language: &str, texts: &[&str]) {
    for expected in texts {
        assert_eq!(cut(&expected.replace('|', ""), grain, language), *expected, "{language}");
    }
}

#[test]
fn english_sentences() {
    expect(
        Grain::Sentence,
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
fn spanish_sentences() {
    expect(
        Grain::Sentence,
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
fn german_sentences() {
    expect(
        Grain::Sentence,
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
fn yoruba_sentences() {
    expect(
        Grain::Sentence,
        "yo",
        &[
            "Mo ń wá ìròyìn náà. |Ó ti parí, ẹ ṣé. |Èwo ni ẹ fẹ́? |Mo fẹ́ràn rẹ̀. |Ẹ kú àárọ̀",
            "Mo rí ọ. |Ó dára.",
        ],
    );
}

#[test]
fn chinese_and_japanese_sentences() {
    expect(
        Grain::Sentence,
        "zh",
        &[
            "你好。|今天天气很好！|你要去吗？|好的",
            "他说：“走吧。”|然后他走了。|完",
            "价格是3.5元。|很便宜。",
        ],
    );
    expect(Grain::Sentence, "ja", &["終わりです。|次へ。|はい"]);
}

#[test]
fn hindi_sentences() {
    expect(Grain::Sentence, "hi", &["मैं आ रहा हूँ। |आप कैसे हैं? |डॉ. शर्मा यहाँ हैं। |ठीक॥ |अच्छा"]);
}

#[test]
fn arabic_sentences() {
    expect(Grain::Sentence, "ar", &["جارٍ البحث. |أي حساب تقصد؟ |د. أحمد هنا. |تم الأمر!", "یہ ہے۔ |ٹھیک"]);
}

#[test]
fn words_keep_their_punctuation_and_their_parts() {
    expect(
        Grain::Word,
        "en",
        &[
            "Hello, |world! |It's |3.14 |or |well-known; |see |https://a.b/c?d=e |now",
            "Run |`a b` |now",
            "👩‍👩‍👧 |family",
        ],
    );
    expect(Grain::Word, "zh", &["你|好，|世|界。|再|见"]);
}

#[test]
fn paragraphs_end_with_a_blank_line() {
    expect(
        Grain::Paragraph,
        "en",
        &["One. Two.\nThree.\n\n|Four.\r\n\r\n|Five\n \n\n|Six", "Text\n\n|```\na\n\nb\n```\n\n|End"],
    );
    expect(Grain::Completion, "en", &["One.\n\nTwo."]);
}

#[test]
fn a_cut_waits_until_nothing_can_change_it() {
    let first = |text| {
        Waiting { text, context: Context::default(), language: "en", ended: false }.first(Grain::Sentence)
    };
    for open in ["Done", "Done.", "Done. ", "Done. (", "Done. 5", "It is $3.", "Run `a. B", "```\na. B\n"] {
        assert!(matches!(first(open), Found::Nothing { .. }), "{open}");
    }
    assert_eq!(first("Done. N"), Found::At(6));
    assert_eq!(first("Done. (N"), Found::At(6));
    assert_eq!(first("Done. (n"), Found::Nothing { settled: true });
    assert_eq!(first("Run `a. B` now"), Found::Nothing { settled: true });
}
