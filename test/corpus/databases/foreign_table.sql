CREATE TABLE machine (id);
