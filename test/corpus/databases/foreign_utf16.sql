PRAGMA encoding = 'UTF-16le'; CREATE TABLE machine (id); INSERT INTO machine VALUES ('x');
