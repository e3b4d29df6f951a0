-- The tables of version 2 of the schema. Hosts have created such files: it never changes.
CREATE TABLE approval_owner (
    scope TEXT NOT NULL,
    session TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    PRIMARY KEY (scope, session)
) STRICT;
CREATE TABLE approval (
    scope TEXT NOT NULL,
    id TEXT NOT NULL,
    session TEXT NOT NULL,
    requested_at_ms INTEGER NOT NULL,
    is_pending INTEGER NOT NULL,
    is_open INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (scope, id)
) STRICT;
CREATE INDEX approval_pending ON approval (scope, requested_at_ms, id) WHERE is_pending;
CREATE INDEX approval_open ON approval (scope, session, requested_at_ms, id) WHERE is_open;
