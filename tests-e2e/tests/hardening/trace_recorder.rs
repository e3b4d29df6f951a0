//! Records everything that is traced in this process, at every level.

use std::fmt::{Debug, Write as _};
use std::sync::{LazyLock, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static TRACES: Mutex<String> = Mutex::new(String::new());

/// Starts recording.
pub(crate) fn record_traces() {
    static INSTALLED: LazyLock<()> =
        LazyLock::new(|| tracing::subscriber::set_global_default(TraceRecorder).unwrap());
    LazyLock::force(&INSTALLED);
}

/// Returns everything that was recorded so far.
pub(crate) fn traces() -> String {
    TRACES.lock().unwrap().clone()
}

struct TraceRecorder;

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

fn note(metadata: &Metadata<'_>, record: impl FnOnce(&mut Text)) {
    let mut text = Text(format!("\n{} {}", metadata.target(), metadata.name()));
    record(&mut text);
    TRACES.lock().unwrap().push_str(&text.0);
}

impl Subscriber for TraceRecorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Spans and events of dependencies are not ours.
        metadata.target().starts_with("claude")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        note(attributes.metadata(), |text| attributes.record(text));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut text = Text(String::new());
        values.record(&mut text);
        TRACES.lock().unwrap().push_str(&text.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        note(event.metadata(), |text| event.record(text));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
