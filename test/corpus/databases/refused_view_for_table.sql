ALTER TABLE measurement RENAME TO hidden;
CREATE VIEW measurement AS SELECT * FROM hidden;
