PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET rootpage = 2147483647 WHERE name = 'measurement';
