//! Encryption of texts: entries and summaries of one session, and records.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use chacha20poly1305::aead::{Aead as _, Generate as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use claude_session_store::{EntryId, NewEntry, SessionKey, StoreError, StoredEntry, Subpath};
use hkdf::Hkdf;
use hmac::{Hmac, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::chain::Place;
use super::errors;
use super::keyring::{KeyBytes, Keyring};

/// The version of the envelope.
const VERSION: u64 = 1;

/// The version of the envelope of an entry with a [`Place`].
pub(super) const CHAINED_VERSION: u64 = 2;

/// What is encrypted. Part of the authenticated data, so that one kind cannot replace the other.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Entry,
    ChainedEntry,
    Summary,
    Record,
    /// Of a version of this crate that had no other records.
    Approval,
}

impl Kind {
    fn version(self) -> u64 {
        match self {
            Self::ChainedEntry => CHAINED_VERSION,
            Self::Entry | Self::Summary | Self::Record | Self::Approval => VERSION,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Entry => "entry",
            Self::ChainedEntry => "chained entry",
            Self::Summary => "summary",
            Self::Record => "record",
            Self::Approval => "approval",
        }
    }
}

/// Encrypts and decrypts texts of one scope for one purpose.
pub(super) struct TextCipher<'a> {
    /// What is encrypted, for errors.
    what: String,
    /// The ID of the key that encrypts.
    current: &'a str,
    /// The ciphers of all keys, for the scope.
    ciphers: BTreeMap<&'a str, XChaCha20Poly1305>,
}

/// Encrypts and decrypts the transcripts of one session.
pub(super) struct SessionCipher<'a> {
    key: &'a SessionKey,
    identity: KeyBytes,
    texts: TextCipher<'a>,
}

impl<'a> SessionCipher<'a> {
    pub(super) fn new(keys: &'a Keyring, key: &'a SessionKey) -> Self {
        let identity = derive(keys.identity(), "identity", key.scope());
        let texts = TextCipher::new(
            keys,
            "entries",
            key.scope(),
            format!("an entry of session {}", key.session()),
        );
        Self { key, identity, texts }
    }

    /// Returns the entry to store under this ID, at this place if it has one.
    pub(super) fn encrypt(
        &self,
        entry: &NewEntry,
        id: EntryId,
        place: Option<&Place>,
    ) -> Result<NewEntry, StoreError> {
        // The original ID is encrypted too, so that a load returns it.
        let original = entry.id().as_str();
        let mut plain = Vec::with_capacity(64 + original.len() + entry.text().len());
        // An ID has at most 128 bytes.
        plain.push(u8::try_from(original.len()).unwrap_or(u8::MAX));
        plain.extend_from_slice(original.as_bytes());
        let kind = match place {
            Some(place) => {
                place.write(&mut plain);
                Kind::ChainedEntry
            }
            None => Kind::Entry,
        };
        plain.extend_from_slice(entry.text().as_bytes());
        let data = self.authenticated(kind, entry.subpath(), id.as_str());
        let text = self.texts.seal(kind, &plain, &data)?;
        NewEntry::with_id(entry.subpath().cloned(), id, text)
    }

    /// Returns the original of a stored entry, and its place if it has one.
    pub(super) fn decrypt(
        &self,
        entry: &StoredEntry,
    ) -> Result<(StoredEntry, Option<Place>), StoreError> {
        let envelope = self.texts.read(&entry.text)?;
        let is_chained = envelope["v"].as_u64() == Some(CHAINED_VERSION);
        let kind = if is_chained { Kind::ChainedEntry } else { Kind::Entry };
        let data = self.authenticated(kind, entry.subpath.as_ref(), entry.id.as_str());
        let plain = self.texts.open(kind, &envelope, &data)?;
        let (length, rest) = plain.split_first().ok_or_else(|| self.corrupt())?;
        let (id, mut text) =
            rest.split_at_checked(usize::from(*length)).ok_or_else(|| self.corrupt())?;
        let mut place = None;
        if is_chained {
            let (read, rest) = Place::read(text).ok_or_else(|| self.corrupt())?;
            (place, text) = (Some(read), rest);
        }
        let as_text = |bytes| std::str::from_utf8(bytes).map_err(|_| self.corrupt());
        let id = EntryId::new(as_text(id)?).map_err(|_| self.corrupt())?;
        let subpath = entry.subpath.clone();
        Ok((StoredEntry::new(entry.sequence, subpath, id, as_text(text)?), place))
    }

    /// Returns the summary to store.
    pub(super) fn encrypt_summary(&self, data: &str) -> Result<String, StoreError> {
        let place = self.authenticated(Kind::Summary, None, "");
        self.texts.seal(Kind::Summary, data.as_bytes(), &place)
    }

    /// Returns the original of a stored summary.
    pub(super) fn decrypt_summary(&self, stored: &str) -> Result<String, StoreError> {
        let envelope = self.texts.read(stored)?;
        let place = self.authenticated(Kind::Summary, None, "");
        let plain = self.texts.open(Kind::Summary, &envelope, &place)?;
        String::from_utf8(plain).map_err(|_| self.corrupt())
    }

    /// Returns the ID under which an entry is stored.
    pub(super) fn stored_id(&self, entry: &NewEntry) -> Result<EntryId, StoreError> {
        self.hidden_id(entry.subpath(), entry.id())
    }

    /// Replaces the digests in an ID, which would reveal whether an entry has a guessed text, by authentication
    /// codes that only the identity key can produce. They differ between transcripts.
    fn hidden_id(&self, subpath: Option<&Subpath>, id: &EntryId) -> Result<EntryId, StoreError> {
        let is_digest = |part: &str| {
            part.len() == 32 && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let parts: Vec<String> = id
            .as_str()
            .split('.')
            .map(|part| if is_digest(part) { self.code(subpath, part) } else { part.to_owned() })
            .collect();
        EntryId::new(&parts.join("."))
    }

    /// Returns the authentication code of a digest in this transcript, shortened to the length of a digest.
    fn code(&self, subpath: Option<&Subpath>, digest: &str) -> String {
        let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(self.identity.as_slice())
            .expect("HMAC accepts keys of any length");
        mac.update(&joined(&[
            self.key.project(),
            self.key.session().as_str(),
            subpath.map(Subpath::as_str).unwrap_or_default(),
            digest,
        ]));
        let code = mac.finalize().into_bytes();
        let digits = code.iter().take(16).flat_map(|byte| [byte >> 4, byte & 0xf]);
        digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
    }

    /// Returns the data that binds a text to its place, so that a store cannot exchange texts.
    fn authenticated(&self, kind: Kind, subpath: Option<&Subpath>, id: &str) -> Vec<u8> {
        joined(&[
            kind.as_str(),
            self.key.scope(),
            self.key.project(),
            self.key.session().as_str(),
            subpath.map(Subpath::as_str).unwrap_or_default(),
            id,
        ])
    }

    fn corrupt(&self) -> StoreError {
        self.texts.corrupt()
    }
}

impl<'a> TextCipher<'a> {
    pub(super) fn new(keys: &'a Keyring, purpose: &str, scope: &str, what: String) -> Self {
        let ciphers = keys.keys().map(|(id, bytes)| {
            let derived = derive(bytes, purpose, scope);
            (id, XChaCha20Poly1305::new((&*derived).into()))
        });
        Self { what, current: keys.current(), ciphers: ciphers.collect() }
    }

    /// Encrypts with the current key and returns an envelope.
    pub(super) fn seal(&self, kind: Kind, plain: &[u8], data: &[u8]) -> Result<String, StoreError> {
        let id = self.current;
        let nonce = XNonce::try_generate().map_err(errors::no_random_numbers)?;
        let payload = Payload { msg: plain, aad: data };
        let sealed = self.cipher(id)?.encrypt(&nonce, payload);
        let sealed = sealed.map_err(|_| errors::too_long(plain.len()))?;
        let (id, nonce) = (Value::from(id), BASE64.encode(nonce));
        let version = kind.version();
        let mut envelope = format!(r#"{{"v":{version},"k":{id},"n":"{nonce}","c":""#);
        BASE64.encode_string(sealed, &mut envelope);
        envelope.push_str("\"}");
        Ok(envelope)
    }

    /// Reads an envelope.
    pub(super) fn read(&self, envelope: &str) -> Result<Value, StoreError> {
        serde_json::from_str(envelope).map_err(|_| self.corrupt())
    }

    /// Decrypts an envelope.
    pub(super) fn open(
        &self,
        kind: Kind,
        envelope: &Value,
        data: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        match envelope["v"].as_u64() {
            Some(version) if version == kind.version() => {}
            Some(version) if version > CHAINED_VERSION => {
                return Err(errors::newer_format(&self.what, version));
            }
            _ => return Err(self.corrupt()),
        }
        let text = |name: &str| envelope[name].as_str().ok_or_else(|| self.corrupt());
        let bytes = |name: &str| BASE64.decode(text(name)?).map_err(|_| self.corrupt());
        let nonce: [u8; 24] = bytes("n")?.try_into().map_err(|_| self.corrupt())?;
        let sealed = bytes("c")?;
        let payload = Payload { msg: &sealed, aad: data };
        self.cipher(text("k")?)?.decrypt(&XNonce::from(nonce), payload).map_err(|_| self.corrupt())
    }

    fn cipher(&self, id: &str) -> Result<&XChaCha20Poly1305, StoreError> {
        self.ciphers.get(id).ok_or_else(|| errors::unknown_key(&self.what, id))
    }

    pub(super) fn corrupt(&self) -> StoreError {
        errors::corrupt(&self.what)
    }
}

/// Derives the key of a scope and a purpose, so that no two scopes share one.
fn derive(key: &KeyBytes, purpose: &str, scope: &str) -> KeyBytes {
    let mut derived = Zeroizing::new([0; 32]);
    let info = joined(&["claude-agent-store", purpose, scope]);
    Hkdf::<Sha256>::new(None, key.as_slice())
        .expand(&info, derived.as_mut_slice())
        .expect("HKDF produces up to 8,160 bytes");
    derived
}

/// Joins texts so that different lists never give the same bytes.
pub(super) fn joined(parts: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}
