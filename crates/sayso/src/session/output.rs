//! What an agent's model writes.

/// Some of an output, or all of it. A plain text is some of it, in the session's language.
///
/// ```
/// use sayso::Output;
/// let piece: Output = "It rai".into();
/// let whole = Output::whole("It rains in Oslo.");
/// let spanish = Output::whole("Llueve en Oslo.").language("es");
/// # let _ = (piece, whole, spanish);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a builder does nothing by itself"]
pub struct Output {
    pub(super) text: String,
    pub(super) language: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) whole: bool,
}

impl Output {
    /// Some of it; more may follow.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), language: None, content_type: None, whole: false }
    }

    /// The whole of it, or the last of it.
    pub fn whole(text: impl Into<String>) -> Self {
        Self { whole: true, ..Self::new(text) }
    }

    setters! {
        /// The language that it is in, by its tag, where it is another than the session's (§11.5.3). An output has one language;
        /// text in another one is another output.
        ///
        /// There are no variants here as there are of [`Words`](crate::Words): a model writes once, and who listens in another
        /// language hears it in the one that it is in, and that it is.
        language(tag: impl Into<String>) => language = Some(tag.into());

        /// The media type of the text, like `text/markdown`; `text/plain` if not set. An output has one.
        content_type(media_type: impl Into<String>) => content_type = Some(media_type.into());
    }
}

impl<T: Into<String>> From<T> for Output {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}
