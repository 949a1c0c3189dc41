PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = 'problem';
