//! The receipt of a resolved question, as the hub sent it.

/// The hub's record of how a question was resolved, and the hub's signature over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedReceipt {
    /// The canonical text, which is what the hub signed.
    pub(crate) text: Box<str>,
    /// A detached JWS; absent if the hub has no key.
    pub(crate) signature: Option<Box<str>>,
}

/// Adds the getters of a type whose receipt is in the field `receipt`.
macro_rules! receipt_getters {
    () => {
        /// Returns the receipt: the hub's record of this answer, as canonical JSON. Returns `None` if the hub sent none.
        pub fn receipt(&self) -> Option<&str> {
            self.receipt.as_deref().map(|receipt| &*receipt.text)
        }

        /// Returns the hub's signature over the text of [`receipt`](Self::receipt): a detached JWS with ES256. With both and
        /// the hub's public key, others can verify the answer. Returns `None` if the hub signs no receipts.
        pub fn receipt_signature(&self) -> Option<&str> {
            self.receipt.as_deref()?.signature.as_deref()
        }
    };
}
pub(super) use receipt_getters;
