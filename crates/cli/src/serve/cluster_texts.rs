//! What the nodes of a cluster share as texts in the database: the tokens, and the keys.

use std::path::Path;
use std::time::Duration;

use journal::SharedTexts;
use seal::es256::SigningKey;
use seal::{Random, SystemRandom, base64url};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use wire::auth::Tokens;

use super::first_token;
use crate::output::describe_io_error;

/// The names of the shared texts.
pub(crate) const TOKENS_TEXT: &str = "tokens";
pub(crate) const RECEIPT_KEY_TEXT: &str = "receipt-key";
const CLUSTER_KEY_TEXT: &str = "cluster-key";

/// How often a node looks for changed tokens, so that a revocation takes effect within a second.
const TOKEN_INTERVAL: Duration = Duration::from_millis(400);

/// What a node reads when it joins.
pub(super) struct ClusterTexts {
    pub(super) tokens: Tokens,
    /// Taken by the hub.
    pub(super) token_changes: Option<TokenChanges>,
    /// Signs the manifest and the receipts.
    pub(super) signing_key: SigningKey,
    /// Authenticates the connections between the nodes.
    pub(super) cluster_key: [u8; 32],
}

impl ClusterTexts {
    /// Reads the texts. The first node of a cluster creates them, and writes an admin token to its data folder.
    pub(super) fn open(mut texts: SharedTexts, data: &Path) -> Result<Self, String> {
        let signing_key = shared_secret(&mut texts, RECEIPT_KEY_TEXT, SigningKey::from_secret)?;
        let cluster_key = shared_secret(&mut texts, CLUSTER_KEY_TEXT, |secret| Some(*secret))?;
        let (tokens, version) = shared_tokens(&mut texts, data)?;
        let token_changes = Some(TokenChanges::watch(texts, version)?);
        Ok(Self { tokens, token_changes, signing_key, cluster_key })
    }
}

/// Returns the key that a shared secret stands for. The first node creates the secret.
fn shared_secret<K>(
    texts: &mut SharedTexts,
    name: &str,
    to_key: impl Fn(&[u8; 32]) -> Option<K>,
) -> Result<K, String> {
    loop {
        if let Some(text) = texts.read(name, None).map_err(|error| error.to_string())? {
            let secret = base64url::decode(&text.content).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
            let key = secret.as_ref().and_then(&to_key);
            return key.ok_or_else(|| format!("the entry {name} in the database is not a valid key"));
        }
        let mut secret = [0; 32];
        SystemRandom.fill(&mut secret);
        if to_key(&secret).is_some() {
            let text = base64url::encode(&secret);
            texts.replace(name, &text, None).map_err(|error| error.to_string())?;
        }
    }
}

/// Returns the tokens and their version. The first node creates an admin token and writes it to its data folder.
fn shared_tokens(texts: &mut SharedTexts, data: &Path) -> Result<(Tokens, i64), String> {
    loop {
        if let Some(text) = texts.read(TOKENS_TEXT, None).map_err(|error| error.to_string())? {
            return Ok((parse_tokens(&text.content)?, text.version));
        }
        super::create_data_dir(data)?;
        let (tokens, token) = first_token::create_shared()?;
        let was_stored = texts.replace(TOKENS_TEXT, &tokens.to_text(), None);
        if was_stored.map_err(|error| error.to_string())? {
            first_token::write_shared(data, &token)?;
        }
    }
}

/// Parses the tokens of a cluster.
pub(crate) fn parse_tokens(text: &str) -> Result<Tokens, String> {
    Tokens::parse(text, Path::new("tokens in the database")).map_err(|error| error.to_string())
}

/// The changes to the cluster's tokens.
pub(super) struct TokenChanges(UnboundedReceiver<Result<Tokens, String>>);

impl TokenChanges {
    /// Watches the tokens on a thread of its own, until this value is dropped.
    fn watch(texts: SharedTexts, version: i64) -> Result<Self, String> {
        let (sender, receiver) = unbounded_channel();
        std::thread::Builder::new()
            .name("cluster-tokens".to_owned())
            .spawn(move || watch_tokens(texts, version, &sender))
            .map_err(|error| describe_io_error(&error))?;
        Ok(Self(receiver))
    }

    /// Waits for the next change, or for the error that prevents reading it. Every error is returned, unless it repeats the last one.
    pub(super) async fn next(&mut self) -> Result<Tokens, String> {
        match self.0.recv().await {
            Some(change) => change,
            None => std::future::pending().await,
        }
    }
}

fn watch_tokens(mut texts: SharedTexts, mut version: i64, sender: &UnboundedSender<Result<Tokens, String>>) {
    let mut last_error = None;
    while !sender.is_closed() {
        std::thread::sleep(TOKEN_INTERVAL);
        let read = texts.read(TOKENS_TEXT, Some(version)).map_err(|error| error.to_string());
        let change = match read {
            // Reading works again.
            Ok(None) if last_error.is_some() => {
                texts.read(TOKENS_TEXT, None).map_err(|error| error.to_string())
            }
            other => other,
        };
        let change = change.and_then(|text| {
            text.map(|text| {
                version = text.version;
                parse_tokens(&text.content)
            })
            .transpose()
        });
        match change {
            Ok(None) => {}
            Ok(Some(tokens)) => {
                last_error = None;
                let _ = sender.send(Ok(tokens));
            }
            Err(error) if last_error.as_ref() == Some(&error) => {}
            Err(error) => {
                last_error = Some(error.clone());
                let _ = sender.send(Err(error));
            }
        }
    }
}
