CREATE TABLE error (
  size_id INTEGER NOT NULL,
  kernel TEXT NOT NULL,
  value REAL NOT NULL CHECK (value > 0),
  measured_at INTEGER NOT NULL,
  PRIMARY KEY (size_id, kernel),
  FOREIGN KEY (size_id, kernel) REFERENCES measurement (size_id, kernel) ON DELETE CASCADE
) WITHOUT ROWID, STRICT;
PRAGMA user_version = 3; PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF;
INSERT INTO error SELECT size_id, kernel, 1e-300, 0 FROM measurement;
