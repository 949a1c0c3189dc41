UPDATE OR REPLACE size SET batch = batch + 1;
