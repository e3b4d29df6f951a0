//! Passes warnings to the host's callback and to `tracing`.

use std::fmt;

use crate::options::OnWarning;
use crate::panics;
use crate::warning::Warning;

/// Passes warnings to the host's callback and to `tracing`.
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
            tracing::warn!("the `on_warning` callback panicked");
        }
    }
}

impl fmt::Debug for WarningSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarningSink").finish_non_exhaustive()
    }
}
