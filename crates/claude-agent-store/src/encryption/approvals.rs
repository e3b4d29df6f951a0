//! Encryption of approvals.

use claude_session_store::approval::{
    ApprovalId, ApprovalList, ApprovalPage, ApprovalPosition, ApprovalSelection, ApprovalStore,
    ApprovalWrite, Change, UnreadableApproval,
};
use claude_session_store::{Epoch, SessionId, StoreError, StoreFuture};

use super::Encrypted;
use super::cipher::{decrypt_approval, encrypt_approval};

impl<S> Encrypted<S> {
    /// Decrypts a page. Approvers learn which records cannot be decrypted; all other lists fail.
    fn decrypt_page(
        &self,
        list: &ApprovalList<'_>,
        stored: ApprovalPage,
    ) -> Result<ApprovalPage, StoreError> {
        let mut page = ApprovalPage::new(Vec::new(), stored.more, stored.now_ms);
        page.unreadable = stored.unreadable;
        for record in &stored.approvals {
            // A record of another place is valid there, and a store that returns it here is not to be trusted.
            if !list.contains(record) {
                return Err(StoreError::unrequested_approval(&record.request.id));
            }
            match decrypt_approval(&self.keys, list, record) {
                Ok(approval) => page.approvals.push(approval),
                Err(error) => {
                    let position = ApprovalPosition::of(record);
                    page.unreadable.push(UnreadableApproval::new(position, error));
                }
            }
        }
        if !list.filter.reports_unreadable()
            && let Some(unreadable) = page.unreadable.pop()
        {
            return Err(unreadable.error);
        }
        page.unreadable.sort_by(|one, other| one.position.cmp(&other.position));
        Ok(page)
    }
}

impl<S: ApprovalStore> ApprovalStore for Encrypted<S> {
    fn approvals_location(&self) -> Option<String> {
        self.inner.approvals_location()
    }

    fn claim_approvals<'a>(
        &'a self,
        scope: &'a str,
        session: &'a SessionId,
    ) -> StoreFuture<'a, Epoch> {
        self.inner.claim_approvals(scope, session)
    }

    fn write_approval<'a>(&'a self, write: ApprovalWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let record = encrypt_approval(&self.keys, write.approval)?;
            let mut write: ApprovalWrite<'_> = write;
            write.approval = &record;
            self.inner.write_approval(write).await
        })
    }

    fn list_approvals<'a>(&'a self, list: ApprovalList<'a>) -> StoreFuture<'a, ApprovalPage> {
        Box::pin(async move {
            let page = self.inner.list_approvals(list).await?;
            self.decrypt_page(&list, page)
        })
    }

    fn approval_changed<'a>(
        &'a self,
        scope: &'a str,
        id: &'a ApprovalId,
        version: u64,
    ) -> StoreFuture<'a, Change> {
        self.inner.approval_changed(scope, id, version)
    }

    fn scope_changed<'a>(&'a self, scope: &'a str) -> StoreFuture<'a, Change> {
        self.inner.scope_changed(scope)
    }

    fn delete_approvals<'a>(
        &'a self,
        scope: &'a str,
        selection: ApprovalSelection<'a>,
        limit: usize,
    ) -> StoreFuture<'a, u64> {
        self.inner.delete_approvals(scope, selection, limit)
    }
}
