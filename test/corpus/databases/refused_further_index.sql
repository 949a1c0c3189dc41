CREATE INDEX more ON measurement (time_ms);
