import { parseArgs } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { sleep } from '../apps/cli/processes.mjs';
import { cpuTime, cpuTimeOf, cpuTimeOfFamily } from './cpu-time.mjs';
import { table, us, whole } from './figures.mjs';
import { startInkpad } from './inkpad.mjs';
import { onStage } from './stage.mjs';

/** For 50,000 rows; less for fewer. */
const FLOOR_SECONDS = 120;
const MAX_ROWS = 50_000;
const POLL_MS = 100;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: { rows: { type: 'string', default: String(MAX_ROWS) }, undo: { type: 'boolean' } },
  });
  const rows = Number(values.rows);
  if (!Number.isInteger(rows) || rows < 1 || rows > MAX_ROWS) {
    throw new StartFailure(`--rows ${values.rows}: must be a whole number of at most ${MAX_ROWS}`);
  }
  return onStage((stage) => measure(stage, rows, values.undo === true));
}

async function measure(stage, rows, undo) {
  const { env, url, accountId, pid, port, token, verify } = await startInkpad(
    stage,
    'bench_imports',
  );
  const dispatcher = stage.start('dist/apps/dispatcher/main.js', { env });
  const [{ card_id: cardId }] = await stage.query(url, 'select min(id) as card_id from cards');
  const parts = {
    api: () => cpuTime(pid),
    dispatcher: () => cpuTime(dispatcher.pid),
    postgres: () => cpuTimeOfFamily(stage.postgres.pid),
  };
  const request = async (path, init = {}) => {
    const response = await fetch(
      `http://127.0.0.1:${port}/api/v1/accounts/${accountId}/imports${path}`,
      { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } },
    );
    const body = await response.json();
    if (!response.ok) throw new Error(`imports${path}: ${JSON.stringify(body)}`);
    return body;
  };
  const waitFor = async (id, isReached) => {
    for (;;) {
      stage.abort.signal.throwIfAborted();
      const current = await request(`/${id}`);
      if (current.state === 'failed') throw new Error(current.error);
      if (isReached(current)) return current;
      await sleep(POLL_MS);
    }
  };
  const file = renderFile(rows);
  const seconds = (since) => (performance.now() - since) / 1000;

  const importFile = () =>
    cpuTimeOf(parts, async () => {
      const start = performance.now();
      const { id } = await request(`?card_id=${cardId}`, {
        method: 'POST',
        body: file,
        headers: { 'content-type': 'text/csv' },
      });
      const uploaded = seconds(start);
      await waitFor(id, ({ state }) => state !== 'checking');
      const checked = seconds(start);
      const done = await waitFor(id, ({ state }) => state === 'done');
      return { ...done, uploaded, checked, applied: seconds(start) };
    });
  const toRow = (name, { result, used }) => [
    name,
    ...['uploaded', 'checked', 'applied'].map((part) => result[part].toFixed(1)),
    ...['api', 'dispatcher', 'postgres'].map((part) =>
      us(used[part] === null ? null : used[part] / rows),
    ),
  ];
  const first = await importFile();
  const again = await importFile();
  if (first.result.created !== rows || again.result.unchanged !== rows) {
    throw new Error(`not every row was created, then unchanged: ${JSON.stringify([first, again])}`);
  }
  console.log(
    table([
      [
        `${whole(rows)} rows`,
        'response s',
        'checked s',
        'done s',
        'api µs',
        'dispatcher µs',
        'PostgreSQL µs',
      ],
      toRow('new customers', first),
      toRow('the same file again', again),
    ]),
  );
  if (undo) {
    const start = performance.now();
    await request(`/${first.result.id}/undo`, { method: 'POST' });
    await waitFor(first.result.id, ({ state }) => state === 'undone');
    console.log(`undone in ${seconds(start).toFixed(1)} s`);
  }
  console.log(await verify());
  const floor = FLOOR_SECONDS * (rows / MAX_ROWS);
  const passed = first.result.applied <= floor;
  console.log(
    `${passed ? 'PASS' : 'FAIL'}: ${first.result.applied.toFixed(1)} s (at most ${floor.toFixed(1)} s)`,
  );
  return passed ? 0 : 1;
}

/** As a spreadsheet of a German shop: semicolons, dates with dots, stamps. */
function renderFile(rows) {
  const lines = ['Vorname;Nachname;E-Mail;Telefon;Geburtstag;Newsletter;Kundennummer;Stempel'];
  for (let i = 0; i < rows; i++) {
    const day = String((i % 28) + 1).padStart(2, '0');
    lines.push(
      `Anna;Muster ${i};kunde${i}@example.com;+4915${100_000_000 + i};${day}.05.1990;${i % 3 === 0 ? 'ja' : ''};${i};${i % 10}`,
    );
  }
  return `${lines.join('\r\n')}\r\n`;
}
