INSERT INTO problem (text) VALUES (hex(zeroblob(5000000)));
INSERT INTO machine SELECT NULL, hex(zeroblob(5000000)), 90, 132, 13000, 13000, 91900, 0;
