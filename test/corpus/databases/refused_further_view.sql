CREATE VIEW v AS SELECT * FROM measurement;
