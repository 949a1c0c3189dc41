PRAGMA writable_schema = ON; CREATE TEMP TABLE kept AS SELECT sql FROM sqlite_schema WHERE name = 'measurement';
UPDATE sqlite_schema SET sql = replace(replace(replace(sql, 'REAL NOT NULL', 'BLOB'), 'INTEGER NOT NULL', 'BLOB'), 'WITHOUT ROWID, STRICT', 'WITHOUT ROWID')
  WHERE name = 'measurement'; PRAGMA writable_schema = RESET; PRAGMA ignore_check_constraints = ON;
UPDATE measurement SET time_ms = 0, device_ms = 1;
PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = (SELECT sql FROM kept) WHERE name = 'measurement';
