//! The address of the database that holds the journal.

use std::fmt;

/// The address of a Postgres database. `Debug` and `Display` leave out its password.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::serve) struct DatabaseAddress(String);

impl DatabaseAddress {
    /// Returns `None` if the text is not a `postgres://` address.
    pub(super) fn new(text: &str) -> Option<Self> {
        let is_postgres = ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme));
        is_postgres.then(|| Self(text.to_owned()))
    }

    /// Returns the address with its password.
    #[cfg(feature = "postgres")]
    pub(in crate::serve) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("postgres", ""));
        // An unescaped password may contain any character, so everything between the first colon and the last @ is taken as
        // the password.
        let (user, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) => (Some(credentials.split(':').next().unwrap_or_default()), rest),
            None => (None, rest),
        };
        let (host_and_path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let kept: Vec<_> =
            query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("password")).collect();
        write!(f, "{scheme}://")?;
        if let Some(user) = user {
            write!(f, "{user}@")?;
        }
        f.write_str(host_and_path)?;
        if kept.is_empty() { Ok(()) } else { write!(f, "?{}", kept.join("&")) }
    }
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_left_out() {
        for (address, shown) in [
            ("postgres://db/hub", "postgres://db/hub"),
            (
                "postgres://anna:geheim@db:5433/hub?sslmode=require",
                "postgres://anna@db:5433/hub?sslmode=require",
            ),
            ("postgres://anna:ge@h:e/i?m@db/hub", "postgres://anna@db/hub"),
            (
                "postgresql://anna@db/hub?password=geheim&sslmode=disable",
                "postgresql://anna@db/hub?sslmode=disable",
            ),
        ] {
            let address = DatabaseAddress::new(address).unwrap();
            assert_eq!(
                (address.to_string(), format!("{address:?}")),
                (shown.to_owned(), format!("DatabaseAddress({shown})"))
            );
        }
        assert_eq!(DatabaseAddress::new("mysql://db"), None);
    }
}
