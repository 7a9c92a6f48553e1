import { makeWorkerUtils } from 'graphile-worker';
import pg from 'pg';
import { preset, TASK } from './graphile-settings.mjs';
import { plantWith } from './peer-planter.mjs';

await plantWith(async (config) => {
  const utils = await makeWorkerUtils({ preset: preset({ url: config.url }) });
  const pool = new pg.Pool({ connectionString: config.url, max: 2 });
  const count = async (where) => {
    const { rows } = await pool.query(
      `select count(*)::int as count from graphile_worker._private_jobs where ${where}`,
    );
    return rows[0].count;
  };
  await utils.migrate();
  return {
    add: (deliveries) =>
      utils.addJobs(deliveries.map((payload) => ({ identifier: TASK, payload, maxAttempts: 10 }))),
    unfinished: () => count('attempts < max_attempts'),
    failed: () => count('last_error is not null'),
  };
});
