PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (time_ms >= 0)', 'CHECK (length(hex(randomblob(900000000))) > 0)')
  WHERE name = 'measurement';
