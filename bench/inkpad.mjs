import { join } from 'node:path';
import { freePort, root } from './stage.mjs';

const CONCURRENCY = 16;
const START_PATIENCE_MS = 30_000;

/** A stamp card like that of a real shop: two rewards, each unlocked once per card. */
export const template = {
  name: 'Coffee',
  stampsRequired: 10,
  rewards: [
    { name: 'A cookie', stampsRequired: 5 },
    { name: 'A coffee', stampsRequired: 10 },
  ],
};

/** An Inkpad database, migrated, with a first store and token. */
export async function setUpInkpad(stage, name, engine = {}, from = root) {
  const url = await stage.database(name);
  const env = {
    DATABASE_URL: url,
    DATABASE_MIGRATION_URL: '',
    DATA_DIR: join(stage.dataDir, name),
    RATE_LIMIT_PER_MINUTE: '100000000',
    STORE_RATE_LIMIT_PER_MINUTE: '100000000',
    LOG_LEVEL: 'error',
    EVENT_STORE_URL: '',
    // Any free port: the usual ones may belong to a service that runs beside the bench.
    METRICS_PORT: '0',
    HEALTH_PORT: '0',
    ...engine,
  };
  await stage.script('dist/apps/cli/migrate.js', env, from);
  const { api_token: token, account_id: accountId } = JSON.parse(
    await stage.script('dist/apps/cli/setup.js', env, from),
  );
  return { url, env, token, accountId };
}

/**
 * The api as it runs in production, and a card on which customers can be enrolled.
 * @param {string} from the folder of the clone whose build runs
 */
export async function startInkpad(stage, name = 'bench_inkpad', engine = {}, from = root) {
  const service = await setUpInkpad(stage, name, engine, from);
  const { pid, port } = await startApi(stage, service, { from });
  return {
    ...service,
    pid,
    port,
    ...(await openStore(service, port)),
    verify: () => stage.script('dist/apps/cli/verify.js', service.env, from),
  };
}

/**
 * A card in the first store, with its rewards.
 * @returns {Promise<{ enrol: () => Promise<string>, addLocation: () => Promise<number> }>} `enrol` enrols a new customer,
 *   and names the path at which their card is stamped
 */
export async function openStore(service, port) {
  const store = `/api/v1/accounts/${service.accountId}`;
  const post = async (path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}${store}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  const card = await post('/cards', {
    card: { name: template.name, stamps_required: template.stampsRequired },
  });
  for (const { name, stampsRequired } of template.rewards) {
    await post('/rewards', { reward: { card_id: card.id, name, stamps_required: stampsRequired } });
  }

  let customers = 0;
  const enrol = async () => {
    const number = ++customers;
    const customer = await post('/customers', {
      customer: { first_name: `Guest ${number}`, email: `guest${number}@example.com` },
      card_id: card.id,
    });
    return `${store}/customers/${customer.id}/customer_cards/${customer.customer_card.id}/stamp`;
  };
  const addLocation = async () => {
    const pin = { latitude: 53.55, longitude: 9.99 };
    const location = { name: 'Old Town', address: 'Marktplatz 1, 20095 Hamburg, Germany', pin };
    return (await post('/locations', { location })).id;
  };
  return { enrol, addLocation };
}

/**
 * One more api over the same database.
 * @returns {Promise<{ pid: number, port: number, child: import('node:child_process').ChildProcess }>}
 */
export async function startApi(stage, { env }, { from = root, flags = [] } = {}) {
  const port = await freePort();
  const child = stage.start('dist/apps/api/main.js', {
    env: { ...env, PORT: String(port), HOST: '127.0.0.1', PUBLIC_URL: '' },
    from,
    flags,
    readsOutput: env.LOG_LEVEL === 'info',
  });
  await waitUntilResponsive(stage, `http://127.0.0.1:${port}/api/v1/status`);
  return { pid: child.pid, port, child };
}

export async function enrolMany(enrol, count) {
  const paths = [];
  const loop = async () => {
    while (paths.length < count) {
      const place = paths.push('') - 1;
      paths[place] = await enrol();
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, loop));
  return paths;
}

export async function waitUntilResponsive(stage, url) {
  const deadline = Date.now() + START_PATIENCE_MS;
  for (;;) {
    stage.abort.signal.throwIfAborted();
    try {
      if ((await fetch(url)).ok) return;
    } catch (error) {
      // Not listening yet; if it had exited, the stage would be aborted.
      if (error.cause?.code !== 'ECONNREFUSED') throw error;
    }
    if (Date.now() > deadline) throw new Error(`${url} did not respond in time`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
