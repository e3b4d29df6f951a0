//! Names a store in an error.

use std::fmt;

use claude_session_store::SessionStore;
use claude_session_store::record::RecordStore;

use crate::panics;

/// The maximum length of a location in characters.
const MAX_LOCATION: usize = 256;

/// A store, as errors name it: `session store (SQLite "/srv/sessions.db")`, without the parentheses if the store does
/// not tell its location.
#[derive(Clone, Copy)]
pub(crate) enum StoreName<'a> {
    Sessions(&'a dyn SessionStore),
    Approvals(&'a dyn RecordStore),
}

impl StoreName<'_> {
    /// Asks the store, which may be code of the host.
    fn location(self) -> Option<String> {
        let location = panics::catch(|| match self {
            Self::Sessions(store) => store.location(),
            Self::Approvals(store) => store.records_location(),
        });
        let location = location.ok().flatten().filter(|location| !location.is_empty())?;
        Some(match location.char_indices().nth(MAX_LOCATION) {
            Some((end, _)) => format!("{}…", &location[..end]),
            None => location,
        })
    }
}

impl fmt::Display for StoreName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sessions(_) => "session store",
            Self::Approvals(_) => "approval store",
        })?;
        match self.location() {
            Some(location) => write!(f, " ({location})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use claude_session_store::MemoryStore;

    use super::super::faulty::FaultyStore;
    use super::*;

    #[test]
    fn a_store_is_named_with_its_location() {
        let memory = MemoryStore::new();
        assert_eq!(StoreName::Sessions(&memory).to_string(), "session store");
        assert_eq!(StoreName::Approvals(&memory).to_string(), "approval store");
        for (location, shown) in [
            ("", "session store".to_owned()),
            ("db.example.com", "session store (db.example.com)".to_owned()),
            (&*"ü".repeat(300), format!("session store ({}…)", "ü".repeat(256))),
        ] {
            let store = FaultyStore::at(location);
            assert_eq!(StoreName::Sessions(&store).to_string(), shown);
        }
    }
}
