PRAGMA writable_schema = ON;
INSERT INTO sqlite_schema VALUES ('table', char(27) || '[2J' || char(10) || char(7) || 'v', 'v', 7, 'CREATE nonsense');
