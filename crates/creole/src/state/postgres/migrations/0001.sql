-- Keys, names and topics are bytes: text cannot hold NUL, and bytes have no collation.
-- Several clusters share the tables, so each row names its cluster.

-- Versions of all keys. A new connection moves it to the clock, so a server that lost its last writes in a failover
-- does not issue a version twice.
CREATE SEQUENCE creole.entry_versions AS bigint;

CREATE TABLE creole.entries (
    cluster text COLLATE "C" NOT NULL,
    space smallint NOT NULL,
    key bytea NOT NULL,
    value bytea NOT NULL,
    version bigint NOT NULL,
    expires bigint,
    PRIMARY KEY (cluster, space, key)
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.05
);
CREATE INDEX entries_by_age ON creole.entries (cluster, expires) WHERE expires IS NOT NULL;

CREATE TABLE creole.logs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster text COLLATE "C" NOT NULL,
    name bytea NOT NULL,
    last bigint NOT NULL,
    expires bigint NOT NULL,
    UNIQUE (cluster, name)
) WITH (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX logs_by_age ON creole.logs (cluster, expires);

CREATE TABLE creole.log_entries (
    cluster text COLLATE "C" NOT NULL,
    log bigint NOT NULL,
    sequence bigint NOT NULL,
    entry bytea NOT NULL,
    expires bigint NOT NULL,
    PRIMARY KEY (log, sequence)
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX log_entries_by_age ON creole.log_entries (cluster, expires, sequence);

-- What there is of everything. Each connection counts in one of 16 rows, so writers hardly wait for each other; a total
-- is their sum.
CREATE TABLE creole.counts (
    cluster text COLLATE "C" NOT NULL,
    bucket smallint NOT NULL,
    entries bigint NOT NULL,
    logs bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (cluster, bucket)
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- Messages live for seconds, so a crash of the server may lose them. Their numbers have no gaps, so a reader sees when
-- some were deleted before it read them. The row of `message_heads` orders the publishers of a cluster.
CREATE UNLOGGED TABLE creole.message_heads (
    cluster text COLLATE "C" PRIMARY KEY,
    last bigint NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
CREATE UNLOGGED TABLE creole.messages (
    cluster text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    origin bigint NOT NULL,
    topic bytea NOT NULL,
    message bytea NOT NULL,
    sent bigint NOT NULL,
    PRIMARY KEY (cluster, number)
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- The given time, or that of the server, in microseconds since 1970.
CREATE FUNCTION creole.moment(given_time bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(given_time, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
$$;

-- The first statement of each connection. It returns the version of the schema, and does not change a newer one. The
-- lock excludes the writers that issue a version meanwhile. 4860038716143792755 is "CrSv" and "vers" in ASCII.
CREATE FUNCTION creole.begin_connection(supported integer, OUT schema_version integer, OUT is_read_only boolean)
LANGUAGE plpgsql AS $$
DECLARE
    moment bigint;
BEGIN
    SELECT s.version INTO schema_version FROM creole.schema_version s;
    is_read_only := current_setting('transaction_read_only')::boolean;
    IF schema_version IS DISTINCT FROM supported OR is_read_only THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(4860038716143792755);
    moment := creole.moment(NULL);
    IF moment > (SELECT v.last_value FROM creole.entry_versions v) THEN
        PERFORM setval('creole.entry_versions', moment);
    END IF;
END
$$;

-- Adds to the counts of a cluster. It is the last step of each change, so the row is locked for a short time.
CREATE FUNCTION creole.count_change(cluster_name text, added_entries bigint, added_logs bigint, added_bytes bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF added_entries = 0 AND added_logs = 0 AND added_bytes = 0 THEN
        RETURN;
    END IF;
    INSERT INTO creole.counts AS c (cluster, bucket, entries, logs, bytes)
    VALUES (cluster_name, pg_backend_pid() % 16, added_entries, added_logs, added_bytes)
    ON CONFLICT (cluster, bucket) DO UPDATE SET
        entries = c.entries + excluded.entries, logs = c.logs + excluded.logs, bytes = c.bytes + excluded.bytes;
END
$$;

-- Deletes expired rows, at most a batch of each table, but not the row of the kept key, which the caller has locked.
-- It never waits for a lock, so two writers cannot block each other.
CREATE FUNCTION creole.sweep(
    cluster_name text, moment bigint, batch integer, kept_space smallint, kept_key bytea,
    OUT swept_entries bigint, OUT swept_bytes bigint
) LANGUAGE plpgsql AS $$
DECLARE
    log_bytes bigint;
BEGIN
    WITH due AS (
        SELECT e.space, e.key FROM creole.entries e
        WHERE e.cluster = cluster_name AND e.expires <= moment
            AND (kept_key IS NULL OR e.space <> kept_space OR e.key <> kept_key)
        ORDER BY e.expires LIMIT batch FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM creole.entries e USING due
        WHERE e.cluster = cluster_name AND e.space = due.space AND e.key = due.key
        RETURNING octet_length(e.key) + octet_length(e.value) + 128 AS size
    )
    SELECT count(*), coalesce(sum(gone.size), 0) INTO swept_entries, swept_bytes FROM gone;
    WITH due AS (
        SELECT l.log, l.sequence FROM creole.log_entries l
        WHERE l.cluster = cluster_name AND l.expires <= moment
        ORDER BY l.expires, l.sequence LIMIT batch FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM creole.log_entries l USING due
        WHERE l.log = due.log AND l.sequence = due.sequence
        RETURNING octet_length(l.entry) + 128 AS size
    )
    SELECT coalesce(sum(gone.size), 0) INTO log_bytes FROM gone;
    swept_bytes := swept_bytes + log_bytes;
END
$$;

-- Writes a value if the key has the expected version: NULL is any, and 0 is none. Returns the new version, 0 when
-- another writer was faster, -1 when there are too many entries, and -2 when there are too many bytes.
CREATE FUNCTION creole.write_entry(
    cluster_name text, key_space smallint, entry_key bytea, lock_number bigint, expected bigint, new_value bytea,
    ttl bigint, given_time bigint, max_entries bigint, max_bytes bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    moment bigint;
    stored record;
    is_stored boolean;
    live_version bigint;
    added_entries bigint;
    added_bytes bigint;
    batch integer;
    swept record;
    freed_entries bigint := 0;
    freed_bytes bigint := 0;
    used record;
    outcome bigint;
BEGIN
    -- It orders the writers of a key, also of one without a row.
    PERFORM pg_advisory_xact_lock(lock_number);
    moment := creole.moment(given_time);
    SELECT e.version, e.expires, octet_length(e.value) AS size INTO stored FROM creole.entries e
    WHERE e.cluster = cluster_name AND e.space = key_space AND e.key = entry_key FOR UPDATE;
    is_stored := FOUND;
    IF is_stored AND (stored.expires IS NULL OR stored.expires > moment) THEN
        live_version := stored.version;
    END IF;
    IF coalesce(live_version, 0) <> expected THEN
        RETURN 0;
    END IF;
    added_entries := CASE WHEN is_stored THEN 0 ELSE 1 END;
    added_bytes := octet_length(new_value)
        - CASE WHEN is_stored THEN stored.size ELSE -128 - octet_length(entry_key) END;
    FOREACH batch IN ARRAY ARRAY[8, 1024] LOOP
        SELECT * INTO swept FROM creole.sweep(cluster_name, moment, batch, key_space, entry_key);
        freed_entries := freed_entries + swept.swept_entries;
        freed_bytes := freed_bytes + swept.swept_bytes;
        SELECT coalesce(sum(c.entries), 0) - freed_entries AS entries, coalesce(sum(c.bytes), 0) - freed_bytes AS bytes
        INTO used FROM creole.counts c WHERE c.cluster = cluster_name;
        outcome := CASE
            WHEN added_entries > 0 AND used.entries >= max_entries THEN -1
            WHEN used.bytes + greatest(added_bytes, 0) > max_bytes THEN -2
        END;
        EXIT WHEN outcome IS NULL;
    END LOOP;
    IF outcome < 0 THEN
        PERFORM creole.count_change(cluster_name, -freed_entries, 0, -freed_bytes);
        RETURN outcome;
    END IF;
    -- A new connection does not move the sequence before this transaction ends.
    PERFORM pg_advisory_xact_lock_shared(4860038716143792755);
    outcome := nextval('creole.entry_versions');
    IF is_stored THEN
        UPDATE creole.entries e SET value = new_value, version = outcome, expires = moment + ttl
        WHERE e.cluster = cluster_name AND e.space = key_space AND e.key = entry_key;
    ELSE
        INSERT INTO creole.entries (cluster, space, key, value, version, expires)
        VALUES (cluster_name, key_space, entry_key, new_value, outcome, moment + ttl);
    END IF;
    PERFORM creole.count_change(cluster_name, added_entries - freed_entries, 0, added_bytes - freed_bytes);
    RETURN outcome;
END
$$;

-- Removes a value if it has the expected version, where NULL is any. Returns whether it did.
CREATE FUNCTION creole.remove_entry(
    cluster_name text, key_space smallint, entry_key bytea, expected bigint, given_time bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    moment bigint := creole.moment(given_time);
    removed_bytes bigint;
BEGIN
    DELETE FROM creole.entries e
    WHERE e.cluster = cluster_name AND e.space = key_space AND e.key = entry_key
        AND (e.expires IS NULL OR e.expires > moment) AND (expected IS NULL OR e.version = expected)
    RETURNING octet_length(e.key) + octet_length(e.value) + 128 INTO removed_bytes;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM creole.count_change(cluster_name, -1, 0, -removed_bytes);
    RETURN true;
END
$$;

-- Appends to a log. Returns the number of the entry, -1 when there are too many logs, and -2 when there are too many
-- bytes.
CREATE FUNCTION creole.append_entry(
    cluster_name text, log_name bytea, lock_number bigint, new_entry bytea, kept_entries bigint, ttl bigint,
    given_time bigint, max_logs bigint, max_bytes bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    moment bigint;
    stored record;
    is_stored boolean;
    batch integer;
    swept record;
    added_entries bigint := 0;
    added_logs bigint := 0;
    added_bytes bigint := 0;
    trimmed_bytes bigint;
    used record;
    outcome bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(lock_number);
    moment := creole.moment(given_time);
    SELECT l.id, l.last, l.expires INTO stored FROM creole.logs l
    WHERE l.cluster = cluster_name AND l.name = log_name FOR UPDATE;
    is_stored := FOUND;
    FOREACH batch IN ARRAY ARRAY[8, 1024] LOOP
        SELECT * INTO swept FROM creole.sweep(cluster_name, moment, batch, NULL, NULL);
        added_entries := added_entries - swept.swept_entries;
        added_bytes := added_bytes - swept.swept_bytes;
        SELECT coalesce(sum(c.logs), 0) AS logs, coalesce(sum(c.bytes), 0) + added_bytes AS bytes
        INTO used FROM creole.counts c WHERE c.cluster = cluster_name;
        outcome := CASE WHEN used.bytes + octet_length(new_entry) + 128 > max_bytes THEN -2 END;
        EXIT WHEN outcome IS NULL;
    END LOOP;
    IF outcome IS NULL AND NOT is_stored AND used.logs >= max_logs THEN
        -- The row of an expired log makes room. The sweep deletes its entries, which have expired too.
        DELETE FROM creole.logs l WHERE l.id = (
            SELECT d.id FROM creole.logs d WHERE d.cluster = cluster_name AND d.expires <= moment
            ORDER BY d.expires LIMIT 1 FOR UPDATE SKIP LOCKED
        );
        IF FOUND THEN
            added_logs := -1;
        ELSE
            outcome := -1;
        END IF;
    END IF;
    IF outcome < 0 THEN
        PERFORM creole.count_change(cluster_name, added_entries, added_logs, added_bytes);
        RETURN outcome;
    END IF;
    -- An entry never expires before an earlier one, so the rest of a log has no gaps.
    IF is_stored THEN
        UPDATE creole.logs l SET last = l.last + 1, expires = greatest(l.expires, moment + ttl)
        WHERE l.id = stored.id RETURNING l.id, l.last, l.expires INTO stored;
    ELSE
        INSERT INTO creole.logs AS l (cluster, name, last, expires) VALUES (cluster_name, log_name, 1, moment + ttl)
        RETURNING l.id, l.last, l.expires INTO stored;
        added_logs := added_logs + 1;
    END IF;
    INSERT INTO creole.log_entries (cluster, log, sequence, entry, expires)
    VALUES (cluster_name, stored.id, stored.last, new_entry, stored.expires);
    -- A locked row has expired, and its locker deletes it.
    WITH excess AS (
        SELECT l.sequence FROM creole.log_entries l
        WHERE l.log = stored.id AND l.sequence <= stored.last - kept_entries FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM creole.log_entries l USING excess WHERE l.log = stored.id AND l.sequence = excess.sequence
        RETURNING octet_length(l.entry) + 128 AS size
    )
    SELECT coalesce(sum(gone.size), 0) INTO trimmed_bytes FROM gone;
    added_bytes := added_bytes + octet_length(new_entry) + 128 - trimmed_bytes;
    PERFORM creole.count_change(cluster_name, added_entries, added_logs, added_bytes);
    RETURN stored.last;
END
$$;

-- Removes a log with its entries. Returns whether it existed.
CREATE FUNCTION creole.remove_log(cluster_name text, log_name bytea, lock_number bigint, given_time bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    removed record;
    removed_bytes bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(lock_number);
    DELETE FROM creole.logs l WHERE l.cluster = cluster_name AND l.name = log_name
    RETURNING l.id, l.expires INTO removed;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    WITH gone AS (
        DELETE FROM creole.log_entries l WHERE l.log = removed.id RETURNING octet_length(l.entry) + 128 AS size
    )
    SELECT coalesce(sum(gone.size), 0) INTO removed_bytes FROM gone;
    PERFORM creole.count_change(cluster_name, 0, -1, -removed_bytes);
    RETURN removed.expires > creole.moment(given_time);
END
$$;

-- Publishes a message, and deletes those that are older than 10 seconds or followed by 1024 others. A lost
-- `message_heads` starts at the clock, so its numbers never appear again.
CREATE FUNCTION creole.publish_message(
    cluster_name text, sender bigint, message_topic bytea, new_message bytea
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment bigint := creole.moment(NULL);
    head bigint;
BEGIN
    INSERT INTO creole.message_heads AS h (cluster, last) VALUES (cluster_name, moment)
    ON CONFLICT (cluster) DO UPDATE SET last = h.last + 1 RETURNING h.last INTO head;
    INSERT INTO creole.messages (cluster, number, origin, topic, message, sent)
    VALUES (cluster_name, head, sender, message_topic, new_message, moment);
    DELETE FROM creole.messages m WHERE m.cluster = cluster_name AND m.number <= head - 1024;
    DELETE FROM creole.messages m WHERE m.cluster = cluster_name AND m.sent <= moment - 10000000 AND m.number IN (
        SELECT o.number FROM creole.messages o WHERE o.cluster = cluster_name ORDER BY o.number LIMIT 8
    );
    PERFORM pg_notify('creole_' || cluster_name, sender::text);
END
$$;

-- The number of the last message.
CREATE FUNCTION creole.message_head(cluster_name text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    head bigint;
BEGIN
    SELECT h.last INTO head FROM creole.message_heads h WHERE h.cluster = cluster_name;
    IF head IS NULL THEN
        INSERT INTO creole.message_heads AS h (cluster, last) VALUES (cluster_name, creole.moment(NULL))
        ON CONFLICT (cluster) DO UPDATE SET last = h.last RETURNING h.last INTO head;
    END IF;
    RETURN head;
END
$$;
