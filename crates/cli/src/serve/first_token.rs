//! The first admin token. It is written to a file that only the owner can read, never to the log.

use std::io::Write;
use std::path::{Path, PathBuf};

use hub::Role;
use seal::{Random, SystemRandom, base64url, private_file};
use wire::auth::{NewToken, Tokens};

use crate::output::{describe_io_error, print_stderr};

/// Name of the file in the data folder.
const FILE_NAME: &str = "admin-token";

/// The file with the admin token of a hub in memory. Dropping it deletes the file, because the token ends with the hub.
pub(super) struct TemporaryTokenFile(PathBuf);

impl Drop for TemporaryTokenFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Creates a data folder's token file and puts an admin token into it.
pub(super) fn create(data: &Path, token_file: &Path) -> Result<(), String> {
    let token =
        Tokens::append(token_file, &admin_token(), &mut SystemRandom).map_err(|error| error.to_string())?;
    let path = data.join(FILE_NAME);
    // An old `admin-token` file contains a token that no longer works.
    let _ = std::fs::remove_file(&path);
    write_token(&path, &token).inspect_err(|_| {
        // Nobody would know the token, so the token file is removed too. The next start creates both files again.
        let _ = std::fs::remove_file(token_file);
    })?;
    print_stderr(&format!(
        "create more tokens with: sayso token new --tokens {} --role listener --name NAME",
        token_file.display()
    ));
    Ok(())
}

/// Creates an admin token for a cluster without tokens. Returns the tokens, and the text of the token, which
/// [`write_shared`] writes when the database has stored the tokens.
#[cfg(feature = "postgres")]
pub(super) fn create_shared() -> Result<(Tokens, String), String> {
    let mut tokens = Tokens::default();
    let (token, _) = tokens.add(&admin_token(), &mut SystemRandom).map_err(|error| error.to_string())?;
    Ok((tokens, token))
}

/// Writes the admin token of a new cluster to the data folder.
#[cfg(feature = "postgres")]
pub(super) fn write_shared(data: &Path, token: &str) -> Result<(), String> {
    let path = data.join(FILE_NAME);
    let _ = std::fs::remove_file(&path);
    write_token(&path, token)
}

/// Creates an admin token for a hub in memory.
pub(super) fn create_temporary() -> Result<(Tokens, TemporaryTokenFile), String> {
    let mut tokens = Tokens::default();
    let (token, _) = tokens.add(&admin_token(), &mut SystemRandom).map_err(|error| error.to_string())?;
    let mut suffix = [0; 9];
    SystemRandom.fill(&mut suffix);
    let path = std::env::temp_dir().join(format!("sayso-{FILE_NAME}-{}", base64url::encode(&suffix)));
    write_token(&path, &token)?;
    Ok((tokens, TemporaryTokenFile(path)))
}

fn admin_token() -> NewToken {
    NewToken::new("admin", Role::Admin, wire::unix_now())
}

/// Writes a token to a new private file and prints the path.
fn write_token(path: &Path, token: &str) -> Result<(), String> {
    let created = private_file::open_options().write(true).create_new(true).open(path);
    created
        .and_then(|mut file| file.write_all(format!("{token}\n").as_bytes()).and_then(|()| file.sync_all()))
        .map_err(|error| format!("cannot write {}: {}", path.display(), describe_io_error(&error)))?;
    print_stderr(&format!("the admin token is in {}", path.display()));
    Ok(())
}
