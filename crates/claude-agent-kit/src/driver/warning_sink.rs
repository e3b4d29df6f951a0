//! Where warnings go besides the stream.

use std::fmt;

use crate::options::OnWarning;
use crate::panics;
use crate::warning::Warning;

/// Tells warnings to the host's callback and to `tracing`.
#[derive(Clone, Default)]
pub(crate) struct WarningSink {
    callback: Option<OnWarning>,
}

impl WarningSink {
    pub(crate) fn new(callback: Option<OnWarning>) -> Self {
        Self { callback }
    }

    pub(crate) fn tell(&self, warning: &Warning) {
        tracing::warn!(code = ?warning.code(), "{warning}");
        if let Some(callback) = &self.callback
            && panics::catch(|| callback(warning)).is_err()
        {
            tracing::warn!("the callback for warnings panicked");
        }
    }
}

impl fmt::Debug for WarningSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarningSink").finish_non_exhaustive()
    }
}
