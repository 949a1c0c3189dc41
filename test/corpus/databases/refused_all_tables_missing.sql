DROP TABLE measurement; DROP TABLE size; DROP TABLE problem; DROP TABLE machine;
