//! Stands between any client and any CLI and writes both directions down.
