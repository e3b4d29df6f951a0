-- Version 3 of the schema adds records, with the approvals of version 2. The name "__schema__" is replaced. The statements
-- run inside a `DO` block. A host of an earlier version that is connected goes on with transcripts, and its requests for
-- approvals fail: two copies could both be used.

-- Hosts of an earlier version go on writing until here, in this order of locks. The statements after this one see all that
-- they have committed, if each sees what is committed when it begins.
LOCK TABLE __schema__.approval_owner, __schema__.approval IN ACCESS EXCLUSIVE MODE;
IF NOT v_is_new AND current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION USING ERRCODE = '0A000',
        MESSAGE = 'the update of the schema needs default_transaction_isolation = read committed';
END IF;

CREATE TABLE __schema__.record_owner (
    -- Keys are compared byte for byte.
    scope text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, owner)
);

CREATE TABLE __schema__.record (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    is_open boolean NOT NULL,
    due_at_ms bigint,
    created_ms bigint NOT NULL,
    -- The request that wrote the record.
    request text COLLATE "C" NOT NULL,
    -- UTF-8: a text cannot have NUL characters.
    body bytea NOT NULL,
    UNIQUE (scope, kind, id)
);
CREATE INDEX record_of_owner ON __schema__.record (scope, owner, kind, sequence);
CREATE INDEX record_open_of_owner ON __schema__.record (scope, owner, kind, sequence) WHERE is_open;
CREATE INDEX record_in_scope ON __schema__.record (scope, kind, sequence);
CREATE INDEX record_open_in_scope ON __schema__.record (scope, kind, sequence) WHERE is_open;
CREATE INDEX record_open ON __schema__.record (kind, sequence) WHERE is_open;
CREATE INDEX record_due ON __schema__.record (kind, due_at_ms) WHERE is_open;

CREATE FUNCTION __schema__.claim_records(
    p_scope text, p_owner text, p_lock_timeout text
) RETURNS bigint
LANGUAGE plpgsql AS $function$
DECLARE
    v_epoch bigint;
BEGIN
    PERFORM __schema__.begin_write(p_lock_timeout);
    -- Waits for a write that has locked the row, so that the new owner reads all that the earlier one stored.
    INSERT INTO __schema__.record_owner AS o (scope, owner, epoch)
    VALUES (p_scope, p_owner, 1)
    ON CONFLICT (scope, owner) DO UPDATE SET epoch = o.epoch + 1
    RETURNING o.epoch INTO v_epoch;
    RETURN v_epoch;
END
$function$;

-- Writes all records or none. Each replaces the one with the version in `p_replaces`, or is new. Returns the epoch of the
-- owner if `p_epoch` is not NULL and the records were not written before, and whether they are written. The records are sorted by their keys: two writes
-- that lock them in different orders would wait for each other.
CREATE FUNCTION __schema__.write_records(
    p_scope text, p_owner text, p_epoch bigint, p_scopes text[], p_kinds text[], p_ids text[],
    p_owners text[], p_replaces bigint[], p_is_open boolean[], p_due_at_ms bigint[],
    p_bodies bytea[], p_request text, p_lock_timeout text,
    OUT o_epoch bigint, OUT o_is_written boolean
)
LANGUAGE plpgsql AS $function$
DECLARE
    v_count integer := coalesce(array_length(p_ids, 1), 0);
BEGIN
    PERFORM __schema__.begin_write(p_lock_timeout);
    -- The store repeats a request whose connection was lost: its first try may have been committed. One record tells, as
    -- all were written together; another host may have changed the others since.
    o_is_written := EXISTS (
        SELECT FROM unnest(p_scopes, p_kinds, p_ids) AS c (scope, kind, id)
        JOIN __schema__.record r ON r.scope = c.scope AND r.kind = c.kind AND r.id = c.id
        WHERE r.request = p_request
    );
    IF o_is_written THEN
        RETURN;
    END IF;
    -- The lock of this row fences: claims wait until the commit.
    WHILE p_epoch IS NOT NULL LOOP
        SELECT o.epoch INTO o_epoch FROM __schema__.record_owner o
        WHERE o.scope = p_scope AND o.owner = p_owner
        FOR NO KEY UPDATE;
        EXIT WHEN FOUND;
        IF p_epoch <> 0 THEN
            o_epoch := 0;
            EXIT;
        END IF;
        INSERT INTO __schema__.record_owner (scope, owner)
        VALUES (p_scope, p_owner) ON CONFLICT DO NOTHING;
    END LOOP;
    IF p_epoch <> o_epoch THEN
        RETURN;
    END IF;

    BEGIN
        FOR v_at IN 1 .. v_count LOOP
            IF p_replaces[v_at] IS NULL THEN
                INSERT INTO __schema__.record (
                    scope, kind, id, owner, version, is_open, due_at_ms, created_ms, request, body
                ) VALUES (
                    p_scopes[v_at], p_kinds[v_at], p_ids[v_at], p_owners[v_at], 1, p_is_open[v_at],
                    p_due_at_ms[v_at], floor(extract(epoch FROM clock_timestamp()) * 1000),
                    p_request, p_bodies[v_at]
                ) ON CONFLICT (scope, kind, id) DO NOTHING;
            ELSE
                -- Waits for another write of the record, and compares the version that it has afterwards.
                UPDATE __schema__.record r SET
                    version = r.version + 1, is_open = p_is_open[v_at],
                    due_at_ms = p_due_at_ms[v_at], request = p_request, body = p_bodies[v_at]
                WHERE r.scope = p_scopes[v_at] AND r.kind = p_kinds[v_at] AND r.id = p_ids[v_at]
                    AND r.version = p_replaces[v_at];
            END IF;
            IF NOT FOUND THEN
                -- Takes back the earlier ones.
                RAISE EXCEPTION USING ERRCODE = 'CA001', MESSAGE = 'conflict';
            END IF;
            PERFORM pg_notify(
                '__schema__',
                json_build_array(p_scopes[v_at], p_kinds[v_at], p_ids[v_at])::text
            );
        END LOOP;
        o_is_written := true;
        RETURN;
    EXCEPTION WHEN SQLSTATE 'CA001' THEN
        NULL;
    END;
END
$function$;

-- Deletes at most `p_limit` records of a scope, of one kind or of all: those of an owner, or that were created before a time,
-- if these are not NULL, and that are open or not. Returns their number. The locks are acquired in the order of the keys, as
-- by writes, and before the condition is checked for the last time: a record that another host has just changed is kept.
CREATE FUNCTION __schema__.delete_records(
    p_scope text, p_kind text, p_owner text, p_before_ms bigint, p_is_open boolean,
    p_limit bigint, p_lock_timeout text
) RETURNS bigint
LANGUAGE plpgsql AS $function$
DECLARE
    v_count bigint;
BEGIN
    PERFORM __schema__.begin_write(p_lock_timeout);
    WITH selected AS MATERIALIZED (
        SELECT r.sequence FROM __schema__.record r
        WHERE r.scope = p_scope AND (p_kind IS NULL OR r.kind = p_kind)
            AND (p_owner IS NULL OR r.owner = p_owner)
            AND (p_before_ms IS NULL OR r.created_ms < p_before_ms)
            AND (p_is_open IS NULL OR r.is_open = p_is_open)
        ORDER BY r.scope, r.kind, r.id LIMIT p_limit FOR UPDATE
    ), deleted AS (
        DELETE FROM __schema__.record r USING selected
        WHERE r.sequence = selected.sequence RETURNING r.sequence
    )
    SELECT count(*) INTO v_count FROM deleted;
    RETURN v_count;
END
$function$;

INSERT INTO __schema__.record_owner (scope, owner, epoch)
    SELECT scope, session, epoch FROM __schema__.approval_owner;
INSERT INTO __schema__.record (
    scope, kind, id, owner, version, is_open, created_ms, request, body
) SELECT scope, 'approval', id, session, version, is_open, requested_at_ms, request,
    convert_to(body, 'UTF8')
    FROM __schema__.approval ORDER BY requested_at_ms, id;
-- Their due times are in their texts, and become known to the store with their next changes.
DROP FUNCTION __schema__.claim_approvals;
DROP FUNCTION __schema__.write_approval;
DROP TABLE __schema__.approval;
DROP TABLE __schema__.approval_owner;

UPDATE __schema__.claude_agent_store SET version = 3;
