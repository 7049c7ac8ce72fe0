//! What agents say. All of it is in normalization form C, and none of it looks like a secret.

use serde_json::{Value, json};

/// A language: its hints, and phrases in it.
#[derive(Clone, Copy)]
pub(crate) struct Language {
    tag: &'static str,
    direction: &'static str,
    script: &'static str,
    /// Whole sentences.
    pub(crate) sentences: [&'static str; 3],
    /// Pieces that end before a sentence does.
    pub(crate) pieces: [&'static str; 3],
}

impl Language {
    pub(crate) fn hints(&self, full: bool) -> Value {
        if full {
            json!({
                "primary_language": self.tag, "text_direction": self.direction, "script": self.script,
                "available_languages": [self.tag, "fr"], "fallback_chain": ["en"], "calendar": "gregory",
            })
        } else {
            json!({ "primary_language": self.tag, "text_direction": self.direction })
        }
    }
}

/// English, Yoruba, Arabic, and a text of both directions that says so.
pub(crate) const LANGUAGES: [Language; 4] = [
    Language {
        tag: "en-US",
        direction: "ltr",
        script: "Latn",
        sentences: ["Looking up the balance.", "All done 😀!", "Which account do you mean?"],
        pieces: ["The balance is", " 1,240 naira and ", "👩‍👩‍👧 family"],
    },
    Language {
        tag: "yo",
        direction: "ltr",
        script: "Latn",
        sentences: ["Mo ń wá ìròyìn náà.", "Ó ti parí, ẹ ṣé.", "Èwo ni ẹ fẹ́?"],
        pieces: ["Owó tó kù", " jẹ́ ẹgbẹ̀rún ", "ọ̀kan 😀"],
    },
    Language {
        tag: "ar",
        direction: "rtl",
        script: "Arab",
        sentences: ["جارٍ البحث عن الرصيد.", "تم الأمر.", "أي حساب تقصد؟"],
        pieces: ["الرصيد هو", " ألف ومئتان ", "دينار"],
    },
    Language {
        tag: "ar-EG",
        direction: "auto",
        script: "Arab",
        sentences: ["رصيد Acme جاهز.", "تم إرسال invoice.", "هل تقصد Acme؟"],
        pieces: ["رصيد Acme", " هو 1,240 EGP ", "شركة Acme 😀"],
    },
];

/// Whether a member's text is for people (§11.1), wherever it stands.
pub(crate) const SPOKEN: [&str; 18] = [
    "summary_terse",
    "summary_normal",
    "summary_detailed",
    "request_text",
    "output_summary",
    "remediation_hint",
    "partial_result",
    "description",
    "args_summary",
    "error_message",
    "chunk",
    "action",
    "consequence",
    "question",
    "context",
    "default_response",
    "reason",
    "label",
];
