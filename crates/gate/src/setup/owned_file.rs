//! Files that belong entirely to sayso. Only one line of each depends on the installation.

use super::plan::Editor;

/// A file that belongs to sayso.
pub(crate) struct OwnedFile {
    /// The complete text.
    pub(crate) text: String,
    /// The start of the line that depends on the installation.
    pub(crate) variable_line: &'static str,
}

impl OwnedFile {
    /// Returns whether a text is this file, apart from the line that depends on the installation.
    fn is_unchanged(&self, text: &str) -> bool {
        let other_lines = |text: &str| -> String {
            text.split_inclusive('\n').filter(|line| !line.starts_with(self.variable_line)).collect()
        };
        other_lines(text) == other_lines(&self.text)
    }
}

impl Editor for OwnedFile {
    fn install(&self, text: &str) -> Result<String, String> {
        if text.is_empty() || self.is_unchanged(text) {
            return Ok(self.text.clone());
        }
        Err("it is not the file that sayso wrote, or it was changed; move it away first".to_owned())
    }

    fn remove(&self, text: &str) -> Result<String, String> {
        if self.is_unchanged(text) {
            return Ok(String::new());
        }
        Err("it is not the file that sayso wrote, or it was changed; delete it yourself".to_owned())
    }

    fn is_empty(&self, text: &str) -> bool {
        text.is_empty()
    }

    fn owns_file(&self) -> bool {
        true
    }
}
