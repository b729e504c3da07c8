-- Which sessions there were is kept for ever, so it must not take a row each. Sessions that went on
-- one day, with none left between them, are one span. An id between two of them that no session
-- ever had is then answered as one that went: it tells nobody anything.

-- +goose Up
CREATE TABLE removed_spans (
    workspace_id  INTEGER NOT NULL,
    owner_user_id INTEGER NOT NULL, -- of local ones
    first_id      INTEGER NOT NULL,
    last_id       INTEGER NOT NULL,
    day           INTEGER NOT NULL, -- on which they went, since 1970, UTC
    PRIMARY KEY (workspace_id, owner_user_id, first_id)
) STRICT, WITHOUT ROWID;
INSERT INTO removed_spans (workspace_id, owner_user_id, first_id, last_id, day)
SELECT workspace_id, owner_user_id, MIN(id), MAX(id), day FROM (
    SELECT x.id, x.workspace_id, x.owner_user_id, x.day,
        SUM(CASE WHEN x.day = x.day_before
            AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.workspace_id = x.workspace_id AND s.id < x.id AND s.id > x.id_before)
        THEN 0 ELSE 1 END) OVER (PARTITION BY x.workspace_id, x.owner_user_id ORDER BY x.id) AS span
    FROM (
        SELECT r.id, r.workspace_id, r.owner_user_id, r.day, LAG(r.day) OVER w AS day_before, LAG(r.id) OVER w AS id_before
        FROM removed_sessions r
        WINDOW w AS (PARTITION BY r.workspace_id, r.owner_user_id ORDER BY r.id)
    ) x
) GROUP BY workspace_id, owner_user_id, span, day;
DROP TABLE removed_sessions;
