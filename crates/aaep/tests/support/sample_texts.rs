//! Sample texts of agents. All are in Unicode normalization form C, and none looks like a secret.

use serde_json::{Value, json};

/// A language with its localization hints and sample phrases.
#[derive(Clone, Copy)]
pub(crate) struct SampleLanguage {
    tag: &'static str,
    direction: &'static str,
    script: &'static str,
    /// Complete sentences.
    pub(crate) sentences: [&'static str; 3],
    /// Fragments that end before a sentence does.
    pub(crate) fragments: [&'static str; 3],
}

impl SampleLanguage {
    pub(crate) fn hints(&self, with_all_members: bool) -> Value {
        if with_all_members {
            json!({
                "primary_language": self.tag, "text_direction": self.direction, "script": self.script,
                "available_languages": [self.tag, "fr"], "fallback_chain": ["en"], "calendar": "gregory",
            })
        } else {
            json!({ "primary_language": self.tag, "text_direction": self.direction })
        }
    }
}

/// English, Yoruba, Arabic, and a mix of Arabic and English with the direction `auto`.
pub(crate) const LANGUAGES: [SampleLanguage; 4] = [
    SampleLanguage {
        tag: "en-US",
        direction: "ltr",
        script: "Latn",
        sentences: ["Looking up the balance.", "All done 😀!", "Which account do you mean?"],
        fragments: ["The balance is", " 1,240 naira and ", "👩‍👩‍👧 family"],
    },
    SampleLanguage {
        tag: "yo",
        direction: "ltr",
        script: "Latn",
        sentences: ["Mo ń wá ìròyìn náà.", "Ó ti parí, ẹ ṣé.", "Èwo ni ẹ fẹ́?"],
        fragments: ["Owó tó kù", " jẹ́ ẹgbẹ̀rún ", "ọ̀kan 😀"],
    },
    SampleLanguage {
        tag: "ar",
        direction: "rtl",
        script: "Arab",
        sentences: ["جارٍ البحث عن الرصيد.", "تم الأمر.", "أي حساب تقصد؟"],
        fragments: ["الرصيد هو", " ألف ومئتان ", "دينار"],
    },
    SampleLanguage {
        tag: "ar-EG",
        direction: "auto",
        script: "Arab",
        sentences: ["رصيد Acme جاهز.", "تم إرسال invoice.", "هل تقصد Acme؟"],
        fragments: ["رصيد Acme", " هو 1,240 EGP ", "شركة Acme 😀"],
    },
];

/// Names of the members whose text is for people (§11.1), at any depth.
pub(crate) const SPOKEN_MEMBERS: [&str; 18] = [
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
