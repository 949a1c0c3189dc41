PRAGMA writable_schema = ON;
INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = 'problem';
