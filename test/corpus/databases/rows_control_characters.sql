UPDATE OR REPLACE measurement SET kernel = char(27) || ']0;' || char(7) || char(10) || 'FFT/fma' || char(0) || 'x';
UPDATE machine SET device_name = device_name || char(10);
INSERT INTO problem (text) VALUES (char(10, 13, 27) || '[31mproblem');
