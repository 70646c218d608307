-- The same ledger in PostgreSQL; every statement ends with a line of two dashes.
--
CREATE SCHEMA privrisk_ledger
--
CREATE DOMAIN privrisk_ledger.amount AS text COLLATE "C" NOT NULL
      CONSTRAINT written CHECK (VALUE ~ '^[0-9]+([.][0-9]+)?([eE][+-]?[0-9]{1,4})?$')
--
CREATE TABLE privrisk_ledger.events (
      lineage text COLLATE "C" NOT NULL,
      sequence integer NOT NULL,
      run_id text COLLATE "C" NOT NULL,
      state text COLLATE "C" NOT NULL,
      epsilon privrisk_ledger.amount,
      delta privrisk_ledger.amount,
      cap_epsilon privrisk_ledger.amount,
      cap_delta privrisk_ledger.amount,
      spent_epsilon_before privrisk_ledger.amount,
      spent_epsilon_after privrisk_ledger.amount,
      spent_delta_before privrisk_ledger.amount,
      spent_delta_after privrisk_ledger.amount,
      mechanism text NOT NULL,
      mechanism_digest text NOT NULL,
      snapshot text,
      nothing_left_the_zone boolean NOT NULL,
      reason text,
      created_at text NOT NULL,
      asked text,
      key_commitment text COLLATE "C",
      place text COLLATE "C",
      release_digest text COLLATE "C",
      CONSTRAINT events_one_per_number PRIMARY KEY (lineage, sequence),
      CONSTRAINT events_one_per_state UNIQUE (lineage, run_id, state),
      CONSTRAINT events_state CHECK (state IN ('reserved', 'bound', 'pinned', 'committed', 'void')),
      CONSTRAINT events_within_cap CHECK (
        spent_epsilon_after::numeric <= cap_epsilon::numeric AND spent_delta_after::numeric <= cap_delta::numeric)
    )
--
CREATE UNIQUE INDEX events_closed_once ON privrisk_ledger.events (lineage, run_id) WHERE state IN ('committed', 'void')
--
CREATE TABLE privrisk_ledger.schema_version (version integer NOT NULL)
--
INSERT INTO privrisk_ledger.schema_version VALUES (2)
--
CREATE FUNCTION privrisk_ledger.refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $body$
BEGIN
  RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'restrict_violation';
END$body$
--
CREATE FUNCTION privrisk_ledger.check_event() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $body$
DECLARE
  last privrisk_ledger.events%ROWTYPE;
  charge integer := CASE WHEN NEW.state = 'reserved' THEN 1
                         WHEN NEW.state = 'void' AND NEW.nothing_left_the_zone THEN -1 ELSE 0 END;
  fits boolean;
  closed boolean;
BEGIN
  SELECT * INTO last FROM privrisk_ledger.events WHERE lineage = NEW.lineage ORDER BY sequence DESC LIMIT 1;
  closed := EXISTS (SELECT FROM privrisk_ledger.events AS earlier WHERE earlier.lineage = NEW.lineage
                    AND earlier.run_id = NEW.run_id AND earlier.state IN ('committed', 'void'));
  fits := NEW.sequence = coalesce(last.sequence, 0) + 1
      AND NEW.spent_epsilon_before::numeric = coalesce(last.spent_epsilon_after::numeric, 0)
      AND NEW.spent_delta_before::numeric = coalesce(last.spent_delta_after::numeric, 0)
      AND NEW.spent_epsilon_after::numeric = NEW.spent_epsilon_before::numeric + charge * NEW.epsilon::numeric
      AND NEW.spent_delta_after::numeric = NEW.spent_delta_before::numeric + charge * NEW.delta::numeric
      AND NEW.cap_epsilon::numeric <= coalesce(last.cap_epsilon, NEW.cap_epsilon)::numeric
      AND NEW.cap_delta::numeric <= coalesce(last.cap_delta, NEW.cap_delta)::numeric
      AND (NEW.state = 'void' OR NOT NEW.nothing_left_the_zone)
      AND (NOT closed OR NEW.state IN ('committed', 'void'))
      AND (CASE NEW.state
             WHEN 'reserved' THEN NEW.asked IS NOT NULL
             WHEN 'bound' THEN NEW.key_commitment IS NOT NULL AND NEW.place IS NOT NULL
             WHEN 'pinned' THEN NEW.snapshot IS NOT NULL
             WHEN 'committed' THEN NEW.snapshot IS NOT NULL AND NEW.release_digest IS NOT NULL
             ELSE true END)
      AND (NEW.state = 'reserved' OR EXISTS (
             SELECT FROM privrisk_ledger.events AS reserved
             WHERE reserved.lineage = NEW.lineage AND reserved.run_id = NEW.run_id AND reserved.state = 'reserved'
               AND reserved.epsilon::numeric = NEW.epsilon::numeric AND reserved.delta::numeric = NEW.delta::numeric
               AND reserved.mechanism_digest = NEW.mechanism_digest
               AND (NEW.state = 'void'
                    OR (reserved.asked IS NULL AND NEW.state = 'committed' AND NEW.place IS NOT NULL)
                    OR (reserved.asked IS NOT NULL
                        AND (NEW.state = 'bound' OR EXISTS (
                          SELECT FROM privrisk_ledger.events AS earlier
                          WHERE earlier.lineage = NEW.lineage AND earlier.run_id = NEW.run_id
                            AND (NEW.state = 'pinned' AND earlier.state = 'bound'
                                 OR NEW.state = 'committed' AND earlier.state = 'pinned'
                                    AND earlier.snapshot = NEW.snapshot)))))));
  IF fits IS NOT TRUE THEN
    RAISE EXCEPTION 'the event does not follow from the events before it'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END$body$
--
CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON privrisk_ledger.events FOR EACH STATEMENT EXECUTE FUNCTION privrisk_ledger.refuse_change()
--
ALTER TABLE privrisk_ledger.events ENABLE ALWAYS TRIGGER events_append_only
--
CREATE TRIGGER events_follow BEFORE INSERT ON privrisk_ledger.events FOR EACH ROW EXECUTE FUNCTION privrisk_ledger.check_event()
--
ALTER TABLE privrisk_ledger.events ENABLE ALWAYS TRIGGER events_follow
--
CREATE TRIGGER schema_version_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON privrisk_ledger.schema_version FOR EACH STATEMENT EXECUTE FUNCTION privrisk_ledger.refuse_change()
--
ALTER TABLE privrisk_ledger.schema_version ENABLE ALWAYS TRIGGER schema_version_append_only
--
INSERT INTO privrisk_ledger.events (lineage, sequence, run_id, state, epsilon, delta, cap_epsilon, cap_delta, spent_epsilon_before, spent_epsilon_after, spent_delta_before, spent_delta_after, mechanism, mechanism_digest, nothing_left_the_zone, created_at, asked) VALUES ('adult', 1, 'r1', 'reserved', '1', '1E-9', '4', '1E-7', '0', '1', '0', '1E-9', '{"k":31,"keep":"1081074828/4294967296","mode":"local"}', '60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d', false, '2026-11-22T16:55:06.355+00:00', '{"policy":"p"}')
--
INSERT INTO privrisk_ledger.events (lineage, sequence, run_id, state, epsilon, delta, cap_epsilon, cap_delta, spent_epsilon_before, spent_epsilon_after, spent_delta_before, spent_delta_after, mechanism, mechanism_digest, nothing_left_the_zone, created_at, asked) VALUES ('adult', 2, 'r2', 'reserved', '1', '1E-9', '4', '1E-7', '1', '2', '1E-9', '2E-9', '{"k":31,"keep":"1081074828/4294967296","mode":"local"}', '60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d', false, '2026-11-22T16:55:06.399+00:00', '{"policy":"p"}')
--
INSERT INTO privrisk_ledger.events (lineage, sequence, run_id, state, epsilon, delta, cap_epsilon, cap_delta, spent_epsilon_before, spent_epsilon_after, spent_delta_before, spent_delta_after, mechanism, mechanism_digest, nothing_left_the_zone, created_at, asked) VALUES ('adult', 3, 'r3', 'reserved', '1', '1E-9', '4', '1E-7', '2', '3', '2E-9', '3E-9', '{"k":31,"keep":"1081074828/4294967296","mode":"local"}', '60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d', false, '2026-11-22T16:55:06.450+00:00', '{"policy":"p"}')
--
INSERT INTO privrisk_ledger.events (lineage, sequence, run_id, state, epsilon, delta, cap_epsilon, cap_delta, spent_epsilon_before, spent_epsilon_after, spent_delta_before, spent_delta_after, mechanism, mechanism_digest, nothing_left_the_zone, created_at, key_commitment, place) VALUES ('adult', 4, 'r1', 'bound', '1', '1E-9', '4', '1E-7', '3', '3', '3E-9', '3E-9', '{"k":31,"keep":"1081074828/4294967296","mode":"local"}', '60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d', false, '2026-11-22T16:55:06.513+00:00', 'k', '/out')
--
INSERT INTO privrisk_ledger.events (lineage, sequence, run_id, state, epsilon, delta, cap_epsilon, cap_delta, spent_epsilon_before, spent_epsilon_after, spent_delta_before, spent_delta_after, mechanism, mechanism_digest, snapshot, nothing_left_the_zone, created_at) VALUES ('adult', 5, 'r1', 'pinned', '1', '1E-9', '4', '1E-7', '3', '3', '3E-9', '3E-9', '{"k":31,"keep":"1081074828/4294967296","mode":"local"}', '60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d', 's', false, '2026-11-22T16:55:06.577+00:00')
--
INSERT INTO privrisk_ledger.events (lineage, sequence, run_id, state, epsilon, delta, cap_epsilon, cap_delta, spent_epsilon_before, spent_epsilon_after, spent_delta_before, spent_delta_after, mechanism, mechanism_digest, snapshot, nothing_left_the_zone, created_at, release_digest) VALUES ('adult', 6, 'r1', 'committed', '1', '1E-9', '4', '1E-7', '3', '3', '3E-9', '3E-9', '{"k":31,"keep":"1081074828/4294967296","mode":"local"}', '60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d', 's', false, '2026-11-22T16:55:06.648+00:00', 'd')
--
INSERT INTO privrisk_ledger.events (lineage, sequence, run_id, state, epsilon, delta, cap_epsilon, cap_delta, spent_epsilon_before, spent_epsilon_after, spent_delta_before, spent_delta_after, mechanism, mechanism_digest, nothing_left_the_zone, created_at, key_commitment, place) VALUES ('adult', 7, 'r2', 'bound', '1', '1E-9', '4', '1E-7', '3', '3', '3E-9', '3E-9', '{"k":31,"keep":"1081074828/4294967296","mode":"local"}', '60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d', false, '2026-11-22T16:55:06.707+00:00', 'k', '/out')
--
INSERT INTO privrisk_ledger.events (lineage, sequence, run_id, state, epsilon, delta, cap_epsilon, cap_delta, spent_epsilon_before, spent_epsilon_after, spent_delta_before, spent_delta_after, mechanism, mechanism_digest, nothing_left_the_zone, reason, created_at) VALUES ('adult', 8, 'r3', 'void', '1', '1E-9', '4', '1E-7', '3', '2', '3E-9', '2E-9', '{"k":31,"keep":"1081074828/4294967296","mode":"local"}', '60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d', true, 'x', '2026-11-22T16:55:06.774+00:00')
