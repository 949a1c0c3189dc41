PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET rootpage = 1 WHERE name IN ('problem', 'measurement');
