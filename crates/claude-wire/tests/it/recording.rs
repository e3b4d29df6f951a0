//! The recordings of the corpus, read without the test kit: that one depends on this crate.

use std::fs;
use std::path::{Path, PathBuf};

/// A line of a recording and where it stands.
pub(crate) struct RecordedLine {
    pub(crate) place: String,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) struct Recorded {
    pub(crate) name: String,
    /// The text of the first line.
    pub(crate) header: String,
    pub(crate) from_cli: Vec<RecordedLine>,
    pub(crate) from_host: Vec<RecordedLine>,
}

/// All recordings of all versions of the CLI.
pub(crate) fn corpus() -> Vec<Recorded> {
    // The tests of the session machine read them as well.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../claude-wire/tests/corpus");
    let mut files: Vec<PathBuf> = entries(&root)
        .filter(|entry| entry.is_dir())
        .flat_map(|version| entries(&version))
        .filter(|file| file.extension().is_some_and(|extension| extension == "wire"))
        .collect();
    files.sort();
    assert!(files.len() >= 60, "the corpus is gone: {} recordings", files.len());
    files.iter().map(|file| read(file)).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}

fn read(file: &Path) -> Recorded {
    let name = file.file_stem().unwrap().to_string_lossy().into_owned();
    let bytes = fs::read(file).unwrap();
    let mut recorded = Recorded {
        name: name.clone(),
        header: String::new(),
        from_cli: Vec::new(),
        from_host: Vec::new(),
    };
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let place = format!("{name}:{}", index + 1);
        let (mark, rest) = line.split_at(line.len().min(3));
        // Behind the mark stands the time, and behind that the line as it was on the wire.
        let wire = || {
            let space = rest.iter().position(|byte| *byte == b' ').unwrap();
            RecordedLine { place: place.clone(), bytes: rest[space + 1..].to_vec() }
        };
        match mark {
            b"## " => recorded.header = String::from_utf8(rest.to_vec()).unwrap(),
            b"<< " => recorded.from_cli.push(wire()),
            b">> " if !rest.ends_with(b" EOF") => recorded.from_host.push(wire()),
            _ => {}
        }
    }
    recorded
}
