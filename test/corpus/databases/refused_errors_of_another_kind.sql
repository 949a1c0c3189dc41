CREATE TABLE error (
  size_id INTEGER NOT NULL,
  kernel TEXT NOT NULL,
  value REAL NOT NULL,
  measured_at INTEGER NOT NULL,
  PRIMARY KEY (size_id, kernel),
  FOREIGN KEY (size_id, kernel) REFERENCES measurement (size_id, kernel) ON DELETE CASCADE
) WITHOUT ROWID, STRICT;
PRAGMA user_version = 3;
