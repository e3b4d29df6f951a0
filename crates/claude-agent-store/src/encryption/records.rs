//! Encryption of records.

use std::time::Duration;

use claude_session_store::approval::Approval;
use claude_session_store::record::{
    OwnerKey, Record, RecordChange, RecordKind, RecordList, RecordPage, RecordSelection,
    RecordStore, RecordWatch, RecordWrite, UnreadableRecord,
};
use claude_session_store::{Epoch, StoreError, StoreFuture};

use super::Encrypted;
use super::cipher::{Kind, TextCipher, joined};
use super::errors;

/// What a store can read of a record, and must not change.
struct Outside<'a> {
    scope: &'a str,
    kind: RecordKind,
    id: &'a str,
    owner: &'a str,
    version: u64,
    is_open: bool,
    due_at_ms: Option<u64>,
}

impl<'a> Outside<'a> {
    fn of_change(change: &'a RecordChange) -> Self {
        Self {
            scope: change.key.scope(),
            kind: change.key.kind(),
            id: change.key.id(),
            owner: &change.owner,
            version: change.version(),
            is_open: change.is_open,
            due_at_ms: change.due_at_ms,
        }
    }

    fn of_record(record: &'a Record) -> Self {
        Self {
            scope: record.key.scope(),
            kind: record.key.kind(),
            id: record.key.id(),
            owner: &record.owner,
            version: record.version,
            is_open: record.is_open,
            due_at_ms: record.due_at_ms,
        }
    }

    /// Returns the data that binds the text to all of this.
    fn authenticated(&self) -> Vec<u8> {
        joined(&[
            Kind::Record.as_str(),
            self.scope,
            self.kind.as_str(),
            self.id,
            self.owner,
            &self.version.to_string(),
            if self.is_open { "open" } else { "closed" },
            &self.due_at_ms.map(|due| due.to_string()).unwrap_or_default(),
        ])
    }
}

impl<S> Encrypted<S> {
    fn record_cipher<'a>(&'a self, purpose: &str, outside: &Outside<'_>) -> TextCipher<'a> {
        let what = format!("the record of {} {:?}", outside.kind, outside.id);
        TextCipher::new(&self.keys, purpose, outside.scope, what)
    }

    fn encrypt_record(&self, change: &RecordChange) -> Result<RecordChange, StoreError> {
        let outside = Outside::of_change(change);
        let data = outside.authenticated();
        let texts = self.record_cipher("records", &outside);
        let mut encrypted = change.clone();
        encrypted.body = texts.seal(Kind::Record, change.body.as_bytes(), &data)?.into();
        Ok(encrypted)
    }

    /// Returns the original of a stored record. That it is one of the requested ones was checked before.
    fn decrypt_record(&self, record: &Record) -> Result<Record, StoreError> {
        let outside = Outside::of_record(record);
        let texts = self.record_cipher("records", &outside);
        let envelope = texts.read(&record.body)?;
        let mut original = record.clone();
        // Version 1 of the format is an approval whose input is the envelope.
        original.body = if outside.kind == RecordKind::Approval && envelope["request"].is_object() {
            self.decrypt_first_format(record)?.into()
        } else {
            let plain = texts.open(Kind::Record, &envelope, &outside.authenticated())?;
            String::from_utf8(plain).map_err(|_| texts.corrupt())?.into()
        };
        Ok(original)
    }

    /// Returns the text of an approval that an earlier version of this crate has encrypted.
    fn decrypt_first_format(&self, record: &Record) -> Result<String, StoreError> {
        let outside = Outside::of_record(record);
        let texts = self.record_cipher("approvals", &outside);
        let stored: Approval = serde_json::from_str(&record.body).map_err(|_| texts.corrupt())?;
        let authenticated = |approval: &Approval| {
            let request = &approval.request;
            joined(&[
                Kind::Approval.as_str(),
                &request.scope,
                request.session_id.as_str(),
                request.id.as_str(),
                &request.requested_at_ms.to_string(),
                approval.status.as_str(),
                &approval.version().to_string(),
            ])
        };
        let request = &stored.request;
        let is_requested = request.scope == outside.scope
            && request.session_id.as_str() == outside.owner
            && request.id.as_str() == outside.id
            && stored.version() == outside.version
            && stored.status.is_open() == outside.is_open
            // That version had no due times.
            && outside.due_at_ms.is_none();
        if !is_requested {
            return Err(texts.corrupt());
        }
        let data = authenticated(&stored);
        let envelope = texts.read(request.input.text())?;
        let plain = texts.open(Kind::Approval, &envelope, &data)?;
        let plain = String::from_utf8(plain).map_err(|_| texts.corrupt())?;
        let approval: Approval = serde_json::from_str(&plain).map_err(|_| texts.corrupt())?;
        if authenticated(&approval) == data { Ok(plain) } else { Err(texts.corrupt()) }
    }

    /// Decrypts a page. Operators learn which records cannot be decrypted; all other lists fail.
    fn decrypt_page(
        &self,
        list: &RecordList<'_>,
        stored: RecordPage,
    ) -> Result<RecordPage, StoreError> {
        let mut page = RecordPage::new(stored.now_ms);
        page.more = stored.more;
        page.unreadable = stored.unreadable;
        for record in &stored.records {
            // A record of another place is valid there, and a store that returns it here is not to be trusted.
            if !list.contains(record, stored.now_ms) {
                return Err(errors::unrequested(&record.key));
            }
            match self.decrypt_record(record) {
                Ok(original) => page.records.push(original),
                Err(error) => {
                    let key = record.key.clone();
                    page.unreadable.push(UnreadableRecord::new(key, record.sequence, error));
                }
            }
        }
        if !list.filter.reports_unreadable()
            && let Some(unreadable) = page.unreadable.pop()
        {
            return Err(unreadable.error);
        }
        page.unreadable.sort_by_key(|unreadable| unreadable.sequence);
        Ok(page)
    }
}

impl<S: RecordStore> RecordStore for Encrypted<S> {
    fn claim_records<'a>(&'a self, owner: &'a OwnerKey) -> StoreFuture<'a, Epoch> {
        self.inner.claim_records(owner)
    }

    fn write_records<'a>(&'a self, write: RecordWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let changes = write.changes.iter().map(|change| self.encrypt_record(change));
            let changes: Vec<RecordChange> = changes.collect::<Result<_, _>>()?;
            let mut encrypted = RecordWrite::new(&changes);
            encrypted.fence = write.fence;
            self.inner.write_records(encrypted).await
        })
    }

    fn list_records<'a>(&'a self, list: RecordList<'a>) -> StoreFuture<'a, RecordPage> {
        Box::pin(async move {
            let page = self.inner.list_records(list).await?;
            self.decrypt_page(&list, page)
        })
    }

    fn records_changed<'a>(&'a self, watch: RecordWatch<'a>) -> StoreFuture<'a, ()> {
        self.inner.records_changed(watch)
    }

    fn poll_interval(&self) -> Duration {
        self.inner.poll_interval()
    }

    fn records_location(&self) -> Option<String> {
        self.inner.records_location()
    }

    fn delete_records<'a>(
        &'a self,
        selection: RecordSelection<'a>,
        kind: Option<RecordKind>,
        limit: usize,
    ) -> StoreFuture<'a, u64> {
        self.inner.delete_records(selection, kind, limit)
    }
}
