CREATE TABLE more (x);
