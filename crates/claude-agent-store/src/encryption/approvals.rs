//! Encryption of approvals.

use claude_agent_kit::SessionId;
use claude_agent_kit::approval::{
    ApprovalId, ApprovalList, ApprovalPage, ApprovalStore, ApprovalWrite,
};
use claude_agent_kit::store::{Epoch, StoreFuture};

use super::Encrypted;
use super::cipher::{decrypt_approval, encrypt_approval};

impl<S: ApprovalStore> ApprovalStore for Encrypted<S> {
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
            let mut page = self.inner.list_approvals(list).await?;
            for approval in &mut page.approvals {
                *approval = decrypt_approval(&self.keys, approval)?;
            }
            Ok(page)
        })
    }

    fn approval_changed<'a>(
        &'a self,
        scope: &'a str,
        id: &'a ApprovalId,
        version: u64,
    ) -> StoreFuture<'a, ()> {
        self.inner.approval_changed(scope, id, version)
    }
}
