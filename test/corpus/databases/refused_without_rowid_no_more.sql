PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'WITHOUT ROWID, ', '') WHERE name = 'measurement';
