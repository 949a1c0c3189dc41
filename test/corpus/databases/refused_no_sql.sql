PRAGMA writable_schema = ON;
INSERT INTO sqlite_schema VALUES ('table', 'v', 'v', 7, 'this is not SQL');
