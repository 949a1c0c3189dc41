PRAGMA writable_schema = ON;
INSERT INTO sqlite_schema VALUES ('table', 'v', 'v', 0, 'CREATE VIRTUAL TABLE v USING nothing(x)');
