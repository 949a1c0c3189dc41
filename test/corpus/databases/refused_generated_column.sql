ALTER TABLE measurement ADD COLUMN more TEXT AS (hex(zeroblob(500000))) VIRTUAL;
