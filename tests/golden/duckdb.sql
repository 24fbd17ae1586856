SELECT
  query_id,
  doc_id,
  position,
  device,
  impressions,
  clicks
FROM (
  SELECT
    k0 AS query_id,
    k1 AS doc_id,
    k2 AS position,
    k3 AS device,
    COUNT(*) AS impressions,
    COUNT(CASE WHEN c THEN 1 END) AS clicks
  FROM (
    SELECT
      query_id AS k0,
      "order" AS k1,
      CASE WHEN CAST(clicked AS INT) BETWEEN 0 AND 1 THEN position END AS k2,
      COALESCE(CAST(device AS TEXT), '') AS k3,
      CAST(clicked AS INT) = 1 AS c
    FROM shop."Clicks"
  ) AS part_2
  GROUP BY
    1,
    2,
    3,
    4
) AS part_1
WHERE
  NOT query_id IS NULL AND NOT doc_id IS NULL AND position >= 1 AND impressions > 0
;
SELECT
  reason,
  COUNT(*) AS refused
FROM (
  SELECT
    CASE
      WHEN query_id IS NULL
      THEN 'query_id is missing'
      WHEN "order" IS NULL
      THEN 'doc_id is missing'
      WHEN COALESCE(position, 0) < 1
      THEN 'position is not a positive whole number'
      WHEN NOT COALESCE(CAST(clicked AS INT) BETWEEN 0 AND 1, FALSE)
      THEN 'clicked is neither 0 nor 1'
    END AS reason
  FROM shop."Clicks"
) AS part_1
WHERE
  NOT reason IS NULL
GROUP BY
  reason
ORDER BY
  reason
;
SELECT
  k0 AS position,
  k1 AS device,
  impressions,
  clicks,
  COUNT(*) AS documents,
  SUM(CASE WHEN k2 > 1 AND k3 = 1 THEN 1 ELSE 0 END) AS moving,
  SUM(CASE WHEN k3 > 1 THEN 1 ELSE 0 END) AS again
FROM (
  SELECT
    position AS k0,
    device AS k1,
    impressions,
    clicks,
    COUNT(*) OVER (PARTITION BY query_id, doc_id) AS k2,
    ROW_NUMBER() OVER (PARTITION BY query_id, doc_id ORDER BY position, device) AS k3
  FROM counts
) AS part_1
GROUP BY
  1,
  2,
  3,
  4
ORDER BY
  1,
  2,
  3,
  4
;
WITH parameters AS (
  SELECT
    1 AS k0,
    'mobile' AS k1,
    CAST(-0.6931471805599453 AS DOUBLE) AS prior_1,
    CAST(0.6931471805599453 AS DOUBLE) AS on_click_1,
    CAST(-0.15415067982725827 AS DOUBLE) AS on_skip_1,
    CAST(-0.6931471805599453 AS DOUBLE) AS prior_2,
    CAST(1.3862943611198906 AS DOUBLE) AS on_click_2,
    CAST(-0.5596157879354227 AS DOUBLE) AS on_skip_2
  UNION ALL
  SELECT
    3 AS k0,
    'mobile' AS k1,
    -0.6931471805599453e0 AS prior_1,
    0.6931471805599453e0 AS on_click_1,
    -0.06899287148695145e0 AS on_skip_1,
    -0.6931471805599453e0 AS prior_2,
    1.3862943611198906e0 AS on_click_2,
    -0.2231435513142097e0 AS on_skip_2
  UNION ALL
  SELECT
    1 AS k0,
    'it''s' AS k1,
    0.6931471805599453e0 AS prior_1,
    0.0e0 AS on_click_1,
    0.0e0 AS on_skip_1,
    0.0e0 AS prior_2,
    0.0e0 AS on_click_2,
    0.0e0 AS on_skip_2
  UNION ALL
  SELECT
    3 AS k0,
    'it''s' AS k1,
    0.6931471805599453e0 AS prior_1,
    0.0e0 AS on_click_1,
    0.0e0 AS on_skip_1,
    0.0e0 AS prior_2,
    0.0e0 AS on_click_2,
    0.0e0 AS on_skip_2
), odds AS (
  SELECT
    query_id,
    doc_id,
    CAST(SUM(cells.impressions) AS BIGINT) AS impressions,
    CAST(SUM(cells.clicks) AS BIGINT) AS clicks,
    CAST(SUM(CAST(cells.impressions * prior_1 AS DECIMAL(38, 12))) AS DOUBLE) / SUM(cells.impressions) + CAST(SUM(
      CAST(cells.clicks * on_click_1 + (
        cells.impressions - cells.clicks
      ) * on_skip_1 AS DECIMAL(38, 12))
    ) AS DOUBLE) AS l_1,
    CAST(SUM(CAST(cells.impressions * prior_2 AS DECIMAL(38, 12))) AS DOUBLE) / SUM(cells.impressions) + CAST(SUM(
      CAST(cells.clicks * on_click_2 + (
        cells.impressions - cells.clicks
      ) * on_skip_2 AS DECIMAL(38, 12))
    ) AS DOUBLE) AS l_2
  FROM (
    SELECT
      query_id,
      doc_id,
      position AS k0,
      device AS k1,
      impressions,
      clicks
    FROM (
      SELECT
        query_id,
        doc_id,
        CASE WHEN position < 3 THEN LEAST(position, 1) ELSE LEAST(position, 3) END AS position,
        device,
        impressions,
        clicks
      FROM counts
    ) AS part_1
  ) AS cells
  JOIN parameters
    USING (k0, k1)
  GROUP BY
    query_id,
    doc_id
), logs AS (
  SELECT
    *,
    GREATEST(0, l_1, l_2) AS l_highest
  FROM odds
), powers AS (
  SELECT
    query_id,
    doc_id,
    impressions,
    clicks,
    EXP(GREATEST(0 - l_highest, -700)) AS e_0,
    EXP(GREATEST(l_1 - l_highest, -700)) AS e_1,
    EXP(GREATEST(l_2 - l_highest, -700)) AS e_2
  FROM logs
), labelled AS (
  SELECT
    query_id,
    doc_id,
    (
      e_1 * 0.5 + e_2 * 1.0
    ) / (
      e_0 + e_1 + e_2
    ) AS relevance,
    impressions,
    clicks,
    CAST(CASE
      WHEN e_0 > 0.025000000000000022 * (
        e_0 + e_1 + e_2
      )
      THEN 0.0
      WHEN e_0 + e_1 > 0.025000000000000022 * (
        e_0 + e_1 + e_2
      )
      THEN 0.5
      ELSE 1
    END AS DOUBLE) AS low,
    CAST(CASE
      WHEN e_0 > 0.975 * (
        e_0 + e_1 + e_2
      )
      THEN 0.0
      WHEN e_0 + e_1 > 0.975 * (
        e_0 + e_1 + e_2
      )
      THEN 0.5
      ELSE 1
    END AS DOUBLE) AS high
  FROM powers
)
SELECT
  query_id,
  doc_id,
  relevance,
  impressions,
  clicks,
  LEAST(low, relevance) AS low,
  GREATEST(high, relevance) AS high
FROM labelled
ORDER BY
  query_id,
  doc_id
