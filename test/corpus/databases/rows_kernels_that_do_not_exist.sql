UPDATE OR REPLACE measurement SET kernel = 'ALGORITHM_99/fma';
