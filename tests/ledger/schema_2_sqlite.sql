-- A ledger as schema 2 wrote it: r1 is committed, r2 bound, r3 voided and given back.
PRAGMA application_id = 1347570759;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE events (
	sequence INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	lineage TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	state TEXT NOT NULL, 
	epsilon TEXT NOT NULL, 
	delta TEXT NOT NULL, 
	cap_epsilon TEXT NOT NULL, 
	cap_delta TEXT NOT NULL, 
	spent_epsilon_before TEXT NOT NULL, 
	spent_epsilon_after TEXT NOT NULL, 
	spent_delta_before TEXT NOT NULL, 
	spent_delta_after TEXT NOT NULL, 
	mechanism TEXT NOT NULL, 
	mechanism_digest TEXT NOT NULL, 
	snapshot TEXT, 
	nothing_left_the_zone BOOLEAN NOT NULL, 
	reason TEXT, 
	created_at TEXT NOT NULL, 
	asked TEXT, 
	key_commitment TEXT, 
	place TEXT, 
	release_digest TEXT, 
	CONSTRAINT state CHECK (state IN ('reserved', 'bound', 'pinned', 'committed', 'void')), 
	CONSTRAINT nothing_left CHECK (nothing_left_the_zone IN (0, 1))
);
INSERT INTO "events" VALUES(1,'adult','r1','reserved','1','1E-9','4','1E-7','0','1','0','1E-9','{"k":31,"keep":"1081074828/4294967296","mode":"local"}','60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d',NULL,0,NULL,'2026-11-22T16:55:04.762+00:00','{"policy":"p"}',NULL,NULL,NULL);
INSERT INTO "events" VALUES(2,'adult','r2','reserved','1','1E-9','4','1E-7','1','2','1E-9','2E-9','{"k":31,"keep":"1081074828/4294967296","mode":"local"}','60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d',NULL,0,NULL,'2026-11-22T16:55:04.774+00:00','{"policy":"p"}',NULL,NULL,NULL);
INSERT INTO "events" VALUES(3,'adult','r3','reserved','1','1E-9','4','1E-7','2','3','2E-9','3E-9','{"k":31,"keep":"1081074828/4294967296","mode":"local"}','60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d',NULL,0,NULL,'2026-11-22T16:55:04.780+00:00','{"policy":"p"}',NULL,NULL,NULL);
INSERT INTO "events" VALUES(4,'adult','r1','bound','1','1E-9','4','1E-7','3','3','3E-9','3E-9','{"k":31,"keep":"1081074828/4294967296","mode":"local"}','60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d',NULL,0,NULL,'2026-11-22T16:55:04.788+00:00',NULL,'k','/out',NULL);
INSERT INTO "events" VALUES(5,'adult','r1','pinned','1','1E-9','4','1E-7','3','3','3E-9','3E-9','{"k":31,"keep":"1081074828/4294967296","mode":"local"}','60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d','s',0,NULL,'2026-11-22T16:55:04.798+00:00',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(6,'adult','r1','committed','1','1E-9','4','1E-7','3','3','3E-9','3E-9','{"k":31,"keep":"1081074828/4294967296","mode":"local"}','60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d','s',0,NULL,'2026-11-22T16:55:04.814+00:00',NULL,NULL,NULL,'d');
INSERT INTO "events" VALUES(7,'adult','r2','bound','1','1E-9','4','1E-7','3','3','3E-9','3E-9','{"k":31,"keep":"1081074828/4294967296","mode":"local"}','60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d',NULL,0,NULL,'2026-11-22T16:55:04.824+00:00',NULL,'k','/out',NULL);
INSERT INTO "events" VALUES(8,'adult','r3','void','1','1E-9','4','1E-7','3','2','3E-9','2E-9','{"k":31,"keep":"1081074828/4294967296","mode":"local"}','60a6c457a00ee8b90edf0a7c57b03423d083cfbc50b099842eb3e18065e98b5d',NULL,1,'x','2026-11-22T16:55:04.834+00:00',NULL,NULL,NULL,NULL);
CREATE UNIQUE INDEX events_one_per_state ON events (lineage, run_id, state);
CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER events_no_replace BEFORE INSERT ON events WHEN EXISTS (SELECT 1 FROM events WHERE sequence = NEW.sequence OR (lineage = NEW.lineage AND run_id = NEW.run_id AND (state = NEW.state OR state IN ('committed', 'void')))) BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',8);
COMMIT;
