-- Version 2 of the schema adds approvals. The name "__schema__" is replaced. The statements run inside a `DO` block.

CREATE TABLE __schema__.approval_owner (
    -- Keys are compared byte for byte.
    scope text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, session)
);

CREATE TABLE __schema__.approval (
    scope text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    requested_at_ms bigint NOT NULL,
    is_pending boolean NOT NULL,
    is_open boolean NOT NULL,
    version bigint NOT NULL,
    -- The request that wrote the record.
    request text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    PRIMARY KEY (scope, id)
);
CREATE INDEX approval_pending ON __schema__.approval (scope, requested_at_ms, id) WHERE is_pending;
CREATE INDEX approval_open ON __schema__.approval (scope, session, requested_at_ms, id)
    WHERE is_open;

CREATE FUNCTION __schema__.claim_approvals(
    p_scope text, p_session text, p_lock_timeout text
) RETURNS bigint
LANGUAGE plpgsql AS $function$
DECLARE
    v_epoch bigint;
BEGIN
    PERFORM __schema__.begin_write(p_lock_timeout);
    -- Waits for a write that has locked the row, so that the new owner reads all that the earlier one stored.
    INSERT INTO __schema__.approval_owner AS o (scope, session, epoch)
    VALUES (p_scope, p_session, 1)
    ON CONFLICT (scope, session) DO UPDATE SET epoch = o.epoch + 1
    RETURNING o.epoch INTO v_epoch;
    RETURN v_epoch;
END
$function$;

-- Writes a record that replaces the one with the version `p_replaces`, or a new one. Returns the epoch of the session
-- if `p_epoch` is not NULL, and whether the record was written.
CREATE FUNCTION __schema__.write_approval(
    p_scope text, p_id text, p_session text, p_requested_at_ms bigint, p_is_pending boolean,
    p_is_open boolean, p_version bigint, p_request text, p_body text, p_replaces bigint,
    p_epoch bigint, p_lock_timeout text, OUT o_epoch bigint, OUT o_is_written boolean
)
LANGUAGE plpgsql AS $function$
BEGIN
    PERFORM __schema__.begin_write(p_lock_timeout);
    o_is_written := false;
    -- The lock of this row fences: claims wait until the commit.
    WHILE p_epoch IS NOT NULL LOOP
        SELECT o.epoch INTO o_epoch FROM __schema__.approval_owner o
        WHERE o.scope = p_scope AND o.session = p_session
        FOR NO KEY UPDATE;
        EXIT WHEN FOUND;
        IF p_epoch <> 0 THEN
            o_epoch := 0;
            EXIT;
        END IF;
        INSERT INTO __schema__.approval_owner (scope, session)
        VALUES (p_scope, p_session) ON CONFLICT DO NOTHING;
    END LOOP;
    IF p_epoch <> o_epoch THEN
        RETURN;
    END IF;

    IF p_replaces IS NULL THEN
        INSERT INTO __schema__.approval (
            scope, id, session, requested_at_ms, is_pending, is_open, version, request, body
        ) VALUES (
            p_scope, p_id, p_session, p_requested_at_ms, p_is_pending, p_is_open, p_version,
            p_request, p_body
        ) ON CONFLICT (scope, id) DO NOTHING;
    ELSE
        -- Waits for another write of the record, and compares the version that it has afterwards.
        UPDATE __schema__.approval a SET
            session = p_session, requested_at_ms = p_requested_at_ms, is_pending = p_is_pending,
            is_open = p_is_open, version = p_version, request = p_request, body = p_body
        WHERE a.scope = p_scope AND a.id = p_id AND a.version = p_replaces;
    END IF;
    IF FOUND THEN
        o_is_written := true;
        IF p_replaces IS NOT NULL THEN
            PERFORM pg_notify('__schema__', p_id);
        END IF;
        RETURN;
    END IF;
    -- The store repeats a request whose connection was lost: its first try may have been committed.
    SELECT true INTO o_is_written FROM __schema__.approval a
    WHERE a.scope = p_scope AND a.id = p_id AND a.request = p_request;
    o_is_written := coalesce(o_is_written, false);
END
$function$;

UPDATE __schema__.claude_agent_store SET version = 2;
