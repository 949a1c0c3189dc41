CREATE INDEX more ON problem (length(replace(text, 'a', 'aaaaaaaaaaaaaaaa')));
