DROP TABLE measurement; CREATE TABLE measurement (size_id, kernel, time_ms, workspace_bytes, deterministic, device_ms,
  measured_at);
