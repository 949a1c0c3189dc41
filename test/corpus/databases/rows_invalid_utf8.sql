UPDATE OR REPLACE measurement SET kernel = CAST(x'fffe4646542f666d61c0af' AS TEXT);
INSERT INTO problem (text) VALUES (CAST(x'80818283' AS TEXT));
UPDATE machine SET device_name = CAST(x'ff' AS TEXT) || device_name;
