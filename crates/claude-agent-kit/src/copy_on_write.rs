//! A value that copies share until one of them changes.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A value that clones share until one of them is changed.
///
/// Large values are kept in it also because the code that drops an [`Arc`] is compiled once, and the
/// code that drops the fields of a struct in each codegen unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CopyOnWrite<T>(Arc<T>);

impl<T> Deref for CopyOnWrite<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for CopyOnWrite<T> {
    /// Clones the value first if it is shared.
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}
