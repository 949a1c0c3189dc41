UPDATE OR REPLACE measurement SET kernel = '';
