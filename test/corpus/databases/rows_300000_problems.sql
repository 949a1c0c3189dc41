WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 300000)
  INSERT INTO problem (text) SELECT 'problem number ' || i FROM r;
