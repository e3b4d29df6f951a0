//! Stores the lines of local transcripts that the store does not have, after a failure of the store.

use std::path::PathBuf;
use std::time::Duration;

use claude_agent_core::session::{CatchUp, MirrorFile};

use super::mirror::{MirrorState, Shared};
use crate::store::{LocalFile, StoreError, Subpath};

/// The time for which no line may be added before the transcripts count as complete.
const QUIET: Duration = Duration::from_secs(2);

impl Shared {
    /// Stores the missing lines of all files, until no file has new ones for a while.
    pub(super) async fn catch_up(
        &self,
        state: &mut MirrorState,
        request: &CatchUp,
    ) -> Result<(), StoreError> {
        state.begin_catch_up();
        let caught_up = self.read_files(state, request).await;
        if caught_up.is_err() {
            state.sessions.forget_stored();
        }
        caught_up
    }

    async fn read_files(
        &self,
        state: &mut MirrorState,
        request: &CatchUp,
    ) -> Result<(), StoreError> {
        let mut is_first = true;
        loop {
            let mut is_unchanged = true;
            for file in &request.files {
                is_unchanged &= self.send_file(state, file).await? == 0;
            }
            if request.is_final || (is_unchanged && !is_first) {
                return Ok(());
            }
            is_first = false;
            tokio::time::sleep(QUIET).await;
        }
    }

    async fn send_file(
        &self,
        state: &mut MirrorState,
        file: &MirrorFile,
    ) -> Result<u64, StoreError> {
        let file = LocalFile {
            key: self.key(&file.session)?,
            subpath: file.subpath.as_deref().map(Subpath::new).transpose()?,
            path: PathBuf::from(&*file.path),
            has_lines: true,
            metadata: file.metadata.clone(),
        };
        self.target.send_file(&mut state.sessions, &file).await
    }
}
