import { parseArgs } from 'node:util';
import { readFileSync } from 'node:fs';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { fillCustomers } from './customers-fill.mjs';
import { median, ms, spread, table, whole } from './figures.mjs';
import { startInkpad } from './inkpad.mjs';
import { onStage } from './stage.mjs';

const MAX_MS = 10_000;
const FILES = ['customers.csv', 'customers.ndjson', 'customer_cards.csv'];
const MIB = 1024 * 1024;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: {
      customers: { type: 'string', default: '100000' },
      rounds: { type: 'string', default: '3' },
    },
  });
  const [customers, rounds] = [Number(values.customers), Number(values.rounds)];
  if (!Number.isInteger(customers) || customers < 1000 || !Number.isInteger(rounds) || rounds < 1) {
    throw new StartFailure('--customers must be at least 1000 and --rounds at least 1');
  }
  return onStage((stage) => measure(stage, { customers, rounds }));
}

async function measure(stage, { customers, rounds }) {
  const { url, accountId, pid, port, token } = await startInkpad(stage, 'bench_exports');
  const [{ card_id: cardId }] = await stage.query(url, 'select min(id) as card_id from cards');
  console.error(`writing ${whole(customers)} customers …`);
  await fillCustomers({ url, accountId, cardId, count: customers });
  for (const name of ['customer', 'customer_card']) await writeLastEvents(stage, url, name);

  const results = FILES.map((file) => ({ file, times: [], peaks: [], bytes: 0, lines: 0 }));
  const before = residentBytes(pid);
  for (let round = 0; round < rounds; round++) {
    for (const result of results) {
      const peak = watchMemory(pid);
      const start = performance.now();
      const response = await fetch(
        `http://127.0.0.1:${port}/api/v1/accounts/${accountId}/exports/${result.file}`,
        { headers: { authorization: `Bearer ${token}`, 'accept-encoding': 'identity' } },
      );
      [result.bytes, result.lines] = [0, 0];
      for await (const chunk of response.body) {
        result.bytes += chunk.length;
        for (const byte of chunk) if (byte === 10) result.lines++;
      }
      result.times.push(performance.now() - start);
      result.peaks.push(peak());
    }
  }
  console.log(
    table([
      ['file', 'lines', 'MiB', 'ms, median (lowest-highest)', 'api, MiB at most'],
      ...results.map(({ file, times, bytes, lines, peaks }) => [
        file,
        whole(lines),
        whole(bytes / MIB),
        spread(times, ms),
        whole(Math.max(...peaks) / MIB),
      ]),
    ]),
  );
  console.log(`the api had ${whole(before / MIB)} MiB before`);
  const slow = results.filter(({ times }) => median(times) > MAX_MS);
  for (const { file, times } of slow) console.log(`FAIL: ${file}: ${ms(median(times))} ms`);
  if (slow.length === 0) console.log(`PASS: each in at most ${whole(MAX_MS)} ms`);
  return slow.length === 0 ? 0 : 1;
}

/** The last event of each record: an export compares its revision with that of the row. */
function writeLastEvents(stage, url, name) {
  return stage.query(
    url,
    `insert into es.events (tx, pos, stream_id, revision, event_id, type, schema_version, account_id, data, meta, hash, recorded_at)
     select '3', nextval('es.global_seq'), '${name}-' || id, revision, gen_random_uuid(), 'Filled', 1, account_id, '{}', '{}', decode(repeat('00', 32), 'hex'), now()
     from ${name}s r
     where not exists (select from es.events e where e.stream_id = '${name}-' || r.id)`,
  );
}

function residentBytes(pid) {
  const [, kib] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * 1024;
}

/** @returns {() => number} ends watching, and returns the highest */
function watchMemory(pid) {
  let highest = residentBytes(pid);
  const timer = setInterval(() => (highest = Math.max(highest, residentBytes(pid))), 50);
  return () => {
    clearInterval(timer);
    return highest;
  };
}
