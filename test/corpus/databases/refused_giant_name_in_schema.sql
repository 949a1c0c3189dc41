PRAGMA writable_schema = ON;
INSERT INTO sqlite_schema VALUES ('table', hex(zeroblob(20000)), 'v', 7, 'CREATE nonsense');
