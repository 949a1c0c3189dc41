DROP TABLE problem;
CREATE VIEW problem AS WITH RECURSIVE r(id, text) AS (SELECT 1, 'a' UNION ALL SELECT id + 1, text || text FROM r)
  SELECT id, text FROM r;
