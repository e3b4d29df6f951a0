-- Version 1 of the schema. The name "__schema__" is replaced. The statements run inside a `DO` block.

CREATE TABLE __schema__.session (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Keys are compared byte for byte.
    scope text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    last bigint NOT NULL DEFAULT 0,
    -- The last sequence number of the main transcript, NULL without one.
    main_last bigint,
    modified_ms bigint NOT NULL DEFAULT 0,
    -- Bytes, because a text cannot contain U+0000.
    summary bytea,
    summary_through bigint,
    UNIQUE (scope, project, session)
);
CREATE INDEX session_listed ON __schema__.session (scope, project, modified_ms, session)
    WHERE main_last IS NOT NULL;

CREATE TABLE __schema__.transcript (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session bigint NOT NULL,
    -- Empty for the main transcript.
    subpath text COLLATE "C" NOT NULL,
    UNIQUE (session, subpath)
);

CREATE TABLE __schema__.entry (
    session bigint NOT NULL,
    sequence bigint NOT NULL,
    transcript bigint NOT NULL,
    entry_id text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, sequence),
    UNIQUE (transcript, entry_id)
);
CREATE INDEX entry_of_transcript ON __schema__.entry (transcript, sequence);

-- Prepares a transaction that writes: a request does not wait for a lock after its caller has given up, and a
-- commit is on disk before it is acknowledged, whatever the default of the database is.
CREATE FUNCTION __schema__.begin_write(p_lock_timeout text) RETURNS void
LANGUAGE plpgsql AS $function$
BEGIN
    PERFORM set_config('lock_timeout', p_lock_timeout, true);
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END
$function$;

CREATE FUNCTION __schema__.claim(
    p_scope text, p_project text, p_session text, p_lock_timeout text
) RETURNS bigint
LANGUAGE plpgsql AS $function$
DECLARE
    v_epoch bigint;
BEGIN
    PERFORM __schema__.begin_write(p_lock_timeout);
    -- Waits for an append that has locked the row, so that the new owner loads all that the earlier one stored.
    INSERT INTO __schema__.session AS s (scope, project, session, epoch)
    VALUES (p_scope, p_project, p_session, 1)
    ON CONFLICT (scope, project, session) DO UPDATE SET epoch = s.epoch + 1
    RETURNING s.epoch INTO v_epoch;
    RETURN v_epoch;
END
$function$;

-- Appends entries that have different IDs. `p_subpath_of` has the position in `p_subpaths` of each entry's subpath.
-- Returns the epoch and the last sequence number before the append, and the sequence number of every entry; no
-- sequence numbers if the epoch is another one or if there are no entries.
CREATE FUNCTION __schema__.append(
    p_scope text, p_project text, p_session text, p_epoch bigint,
    p_subpaths text[], p_subpath_of integer[], p_ids text[], p_texts text[],
    p_summary_after bigint, p_summary bytea, p_lock_timeout text,
    OUT o_epoch bigint, OUT o_last bigint, OUT o_sequences bigint[]
)
LANGUAGE plpgsql AS $function$
DECLARE
    v_session __schema__.session;
    v_count integer := cardinality(p_ids);
    v_main integer := array_position(p_subpaths, '');
    v_main_last bigint;
    v_last bigint;
    v_transcripts bigint[];
    v_new bigint[] := array_fill(NULL::bigint, ARRAY[v_count]);
BEGIN
    PERFORM __schema__.begin_write(p_lock_timeout);
    -- The lock of this row fences and orders: claims and other appends to the session wait until the commit, so
    -- that sequence numbers become visible in their order. Each of the statements below sees what was committed
    -- before the lock was acquired, which one statement with common table expressions would not.
    LOOP
        SELECT * INTO v_session FROM __schema__.session s
        WHERE s.scope = p_scope AND s.project = p_project AND s.session = p_session
        FOR NO KEY UPDATE;
        EXIT WHEN FOUND;
        IF p_epoch <> 0 OR v_count = 0 THEN
            o_epoch := 0;
            o_last := 0;
            RETURN;
        END IF;
        INSERT INTO __schema__.session (scope, project, session)
        VALUES (p_scope, p_project, p_session) ON CONFLICT DO NOTHING;
    END LOOP;
    o_epoch := v_session.epoch;
    o_last := v_session.last;
    v_last := v_session.last;
    IF p_epoch <> o_epoch OR v_count = 0 THEN
        RETURN;
    END IF;

    INSERT INTO __schema__.transcript (session, subpath)
    SELECT v_session.id, s.subpath FROM unnest(p_subpaths) AS s (subpath)
    WHERE NOT EXISTS (
        SELECT FROM __schema__.transcript t WHERE t.session = v_session.id AND t.subpath = s.subpath
    );
    SELECT array_agg(t.id ORDER BY s.position) INTO v_transcripts
    FROM unnest(p_subpaths) WITH ORDINALITY AS s (subpath, position)
    JOIN __schema__.transcript t ON t.session = v_session.id AND t.subpath = s.subpath;

    SELECT array_agg(e.sequence ORDER BY n.position) INTO o_sequences
    FROM unnest(p_subpath_of, p_ids) WITH ORDINALITY AS n (subpath, entry_id, position)
    LEFT JOIN __schema__.entry e
        ON e.transcript = v_transcripts[n.subpath] AND e.entry_id = n.entry_id;
    FOR i IN 1 .. v_count LOOP
        IF o_sequences[i] IS NULL THEN
            v_last := v_last + 1;
            o_sequences[i] := v_last;
            v_new[i] := v_last;
            IF p_subpath_of[i] = v_main THEN
                v_main_last := v_last;
            END IF;
        END IF;
    END LOOP;

    INSERT INTO __schema__.entry (session, sequence, transcript, entry_id, text)
    SELECT v_session.id, n.sequence, v_transcripts[n.subpath], n.entry_id, n.text
    FROM unnest(p_subpath_of, p_ids, p_texts, v_new) AS n (subpath, entry_id, text, sequence)
    WHERE n.sequence IS NOT NULL;

    IF v_last > o_last OR p_summary_after = o_last THEN
        UPDATE __schema__.session s SET
            last = v_last,
            main_last = coalesce(v_main_last, s.main_last),
            modified_ms = CASE WHEN v_main_last IS NULL THEN s.modified_ms ELSE greatest(
                floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, s.modified_ms + 1
            ) END,
            summary = CASE WHEN p_summary_after = o_last THEN p_summary ELSE s.summary END,
            summary_through =
                CASE WHEN p_summary_after = o_last THEN v_last ELSE s.summary_through END
        WHERE s.id = v_session.id;
    END IF;
END
$function$;

-- Deletes a session, or one transcript of it.
CREATE FUNCTION __schema__.remove(
    p_scope text, p_project text, p_session text, p_subpath text, p_lock_timeout text
) RETURNS void
LANGUAGE plpgsql AS $function$
DECLARE
    v_id bigint;
    v_transcript bigint;
BEGIN
    PERFORM __schema__.begin_write(p_lock_timeout);
    SELECT id INTO v_id FROM __schema__.session s
    WHERE s.scope = p_scope AND s.project = p_project AND s.session = p_session
    FOR NO KEY UPDATE;
    IF p_subpath IS NOT NULL THEN
        DELETE FROM __schema__.transcript t WHERE t.session = v_id AND t.subpath = p_subpath
        RETURNING t.id INTO v_transcript;
        DELETE FROM __schema__.entry e WHERE e.transcript = v_transcript;
        RETURN;
    END IF;
    DELETE FROM __schema__.entry e WHERE e.session = v_id;
    DELETE FROM __schema__.transcript t WHERE t.session = v_id;
    -- The epoch and the last sequence number stay.
    UPDATE __schema__.session SET main_last = NULL, summary = NULL, summary_through = NULL
    WHERE id = v_id;
END
$function$;

CREATE TABLE __schema__.claude_agent_store (
    version integer NOT NULL
);
INSERT INTO __schema__.claude_agent_store (version) VALUES (1);
