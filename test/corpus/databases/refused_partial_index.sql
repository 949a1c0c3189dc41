CREATE INDEX more ON problem (text) WHERE text LIKE '%a%b%c%d%e%';
