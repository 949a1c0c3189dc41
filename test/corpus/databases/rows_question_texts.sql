INSERT OR IGNORE INTO problem (text) SELECT text || ' asked ' || column1 FROM problem JOIN (VALUES
  (''), ('nothing'), ('undivided asked undivided'), ('POWEROFTWO'), (char(0))); 
