//! Text that an agent's model writes.

use aaep::OutputId;
use aaep::event::CoalesceHint;

use crate::error::{Error, MalformedInput};

/// A piece of an output, or all of it. A plain string is a piece in the session's language.
///
/// ```
/// use sayso::OutputText;
/// let piece: OutputText = "It is rai".into();
/// let complete = OutputText::complete("It is raining in Oslo.");
/// let spanish = OutputText::complete("Llueve en Oslo.").language("es");
/// # let _ = (piece, complete, spanish);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a builder does nothing by itself"]
pub struct OutputText {
    pub(super) text: String,
    pub(super) output_id: Option<OutputId>,
    pub(super) language: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) coalesce_hint: Option<CoalesceHint>,
    pub(super) is_complete: bool,
}

impl OutputText {
    /// Creates a piece of an output; more may follow.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            output_id: None,
            language: None,
            content_type: None,
            coalesce_hint: None,
            is_complete: false,
        }
    }

    /// Creates the whole output, or its last piece.
    pub fn complete(text: impl Into<String>) -> Self {
        Self { is_complete: true, ..Self::new(text) }
    }

    /// Creates a piece of a model's text. Models write Markdown, and listeners speak it without its markup only if it is labelled.
    pub(crate) fn from_model(text: impl Into<String>) -> Self {
        Self::new(text).content_type("text/markdown")
    }

    /// Names the output, so that a session can write several outputs at the same time. The id is `out_` and 1 to 64 letters or digits. Only
    /// [`complete`](Self::complete) and the end of the session complete a named output.
    ///
    /// ```
    /// # testing::run_example!(hub, session, {
    /// use sayso::OutputText;
    /// session.output(OutputText::new("It is rai").output_id("out_oslo")?).await?;
    /// session.output(OutputText::complete("It is dry in Bergen.").output_id("out_bergen")?).await?;
    /// session.output(OutputText::complete("ning in Oslo.").output_id("out_oslo")?).await?;
    /// # session.finish("Two forecasts.").await?;
    /// # });
    /// ```
    pub fn output_id(self, id: impl AsRef<str>) -> Result<Self, Error> {
        let id = OutputId::parse(id.as_ref()).map_err(|_| Error::Malformed(MalformedInput::OutputId))?;
        Ok(Self { output_id: Some(id), ..self })
    }

    setters! {
        /// Sets the language tag of the text, if it differs from the session's language (§11.5.3). An output has one language;
        /// text in another language is a separate output.
        ///
        /// Output has no translations, unlike [`LocalizedText`](crate::LocalizedText), because a model writes it once. A listener
        /// with another language hears the original text and which language it is in.
        language(tag: impl Into<String>) => language = Some(tag.into());

        /// Sets the media type of the text, such as `text/markdown`. The default is `text/plain`. An output has one media type.
        content_type(media_type: impl Into<String>) => content_type = Some(media_type.into());

        /// Says what ends with this piece, such as a sentence (§4.3.3). The default is `none`, and `completion` for the last piece
        /// whatever is set here. Listeners that take the text as it comes receive the hint; for others the hub finds the boundaries
        /// and writes its own hints.
        ///
        /// End the piece with a space or a line break. A last word may be the start of a secret, so it is held back until the next
        /// piece, and then the piece has no hint.
        ///
        /// ```
        /// # testing::run_example!(hub, session, {
        /// use sayso::{CoalesceHint, OutputText};
        /// session.output(OutputText::new("Oslo: rain ").coalesce_hint(CoalesceHint::Sentence)).await?;
        /// session.output("Bergen: dry").await?;
        /// # session.finish("Two forecasts.").await?;
        /// # });
        /// ```
        coalesce_hint(hint: CoalesceHint) => coalesce_hint = Some(hint);
    }
}

impl<T: Into<String>> From<T> for OutputText {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}
