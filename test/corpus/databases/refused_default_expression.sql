PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'text TEXT NOT NULL', 'text TEXT DEFAULT (hex(zeroblob(9000000))) NOT NULL')
  WHERE name = 'problem';
