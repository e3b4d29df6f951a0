-- The tables of version 1 of the schema. Hosts have created such files: it never changes.
CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    epoch INTEGER NOT NULL DEFAULT 0,
    last INTEGER NOT NULL DEFAULT 0,
    -- The last sequence number of the main transcript, NULL without one.
    main_last INTEGER,
    modified_ms INTEGER NOT NULL DEFAULT 0,
    summary TEXT,
    summary_through INTEGER,
    UNIQUE (scope, project, session)
) STRICT;
CREATE INDEX session_listed ON session (scope, project, modified_ms, session)
    WHERE main_last IS NOT NULL;
CREATE TABLE transcript (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    -- Empty for the main transcript.
    subpath TEXT NOT NULL,
    UNIQUE (session, subpath)
) STRICT;
CREATE TABLE entry (
    session INTEGER NOT NULL,
    transcript INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    entry_id TEXT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (session, sequence),
    UNIQUE (transcript, entry_id)
) STRICT;
CREATE INDEX entry_of_transcript ON entry (transcript, sequence);
