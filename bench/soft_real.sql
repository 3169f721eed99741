-- SPDX-License-Identifier: MIT
-- What bench/soft_real.sh has sqlite do.
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL);
CREATE INDEX by_name ON item(name);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
  INSERT INTO item SELECT i, 'name' || (i * 7919 % 103), i * 1.25 FROM n;
COMMIT;
SELECT count(*), sum(price), max(name) FROM item WHERE name LIKE '%1%' GROUP BY id % 3 ORDER BY 2 DESC;
SELECT count(*) FROM item a JOIN item b ON a.name < b.name;
DELETE FROM item WHERE id % 4 = 1;
SELECT * FROM nowhere;
PRAGMA integrity_check;
