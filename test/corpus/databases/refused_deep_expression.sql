PRAGMA writable_schema = ON;
INSERT INTO sqlite_schema VALUES ('view', 'v', 'v', 0,
  'CREATE VIEW v AS SELECT ' || replace(hex(zeroblob(3000)), '00', '(') || '1' || replace(hex(zeroblob(3000)), '00', ')'));
