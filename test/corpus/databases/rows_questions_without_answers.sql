DELETE FROM measurement;
