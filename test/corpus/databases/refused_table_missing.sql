DROP TABLE measurement;
