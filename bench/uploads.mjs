import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { parseArgs } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { sleep } from '../apps/cli/processes.mjs';
import { median, ms, quantile, table, whole } from './figures.mjs';
import { startInkpad } from './inkpad.mjs';
import { onStage } from './stage.mjs';

const MIB = 1024 * 1024;
const FILE_BYTES = 20 * MIB;
/** Fewer than a file may have, each with a column that is not imported. */
const ROWS = 45_000;
const HELD_BACK_MS = 4_000;
const READ_EVERY_MS = 20;
const MAX_MIB = 400;
const MAX_ADDED_MS = 100;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: { parallel: { type: 'string', default: '40' } },
  });
  const parallel = Number(values.parallel);
  if (!Number.isInteger(parallel) || parallel < 1) {
    throw new StartFailure(`--parallel ${values.parallel}: must be a whole number of at least 1`);
  }
  return onStage((stage) => measure(stage, parallel));
}

async function measure(stage, parallel) {
  const { accountId, pid, port, token } = await startInkpad(stage, 'bench_uploads');
  const store = `/api/v1/accounts/${accountId}`;
  const file = renderFile();
  const head = Buffer.from(
    [
      `POST ${store}/imports?dry_run=true HTTP/1.1`,
      'Host: bench',
      `Authorization: Bearer ${token}`,
      'Content-Type: text/csv',
      `Content-Length: ${file.length}`,
      '\r\n',
    ].join('\r\n'),
  );
  const readRequests = async (until) => {
    const times = [];
    for (let isDone = false; !isDone; isDone = await Promise.race([until, sleep(READ_EVERY_MS)])) {
      const start = performance.now();
      const response = await fetch(`http://127.0.0.1:${port}${store}/cards`, {
        headers: { authorization: `Bearer ${token}` },
      });
      await response.arrayBuffer();
      times.push(performance.now() - start);
    }
    return times;
  };
  const measurePhase = async (work) => {
    const before = readMemory(pid);
    let highest = before;
    const timer = setInterval(() => (highest = Math.max(highest, readMemory(pid))), READ_EVERY_MS);
    const until = work().then((statuses) => (timer.unref(), statuses));
    const times = await readRequests(until.then(() => true));
    clearInterval(timer);
    return { before, highest, times, statuses: await until };
  };
  await readRequests(sleep(2_000).then(() => true));
  const idle = await measurePhase(() => sleep(HELD_BACK_MS).then(() => []));
  const busy = await measurePhase(() =>
    Promise.all(Array.from({ length: parallel }, () => upload(port, head, file))),
  );
  const toRow = (name, { before, highest, times, statuses }) => [
    name,
    whole(before / MIB),
    whole(highest / MIB),
    ms(median(times)),
    ms(quantile(times, 0.99)),
    [...new Set(statuses)].map((one) => `${count(statuses, one)} x ${one}`).join(', ') || '-',
  ];
  console.log(
    table([
      ['uploads', 'api, MiB before', 'MiB at most', 'a read, ms', 'p99', 'responses'],
      toRow('none', idle),
      toRow(`${parallel} of 20 MiB`, busy),
    ]),
  );
  const failures = [
    ...(busy.highest > MAX_MIB * MIB ? [`more than ${MAX_MIB} MiB`] : []),
    ...(median(busy.times) - median(idle.times) > MAX_ADDED_MS
      ? [`a read takes more than ${MAX_ADDED_MS} ms longer`]
      : []),
  ];
  for (const failure of failures) console.log(`FAIL: ${failure}`);
  if (failures.length === 0) {
    console.log(`PASS: at most ${MAX_MIB} MiB, and ${MAX_ADDED_MS} ms more for a read`);
  }
  return failures.length === 0 ? 0 : 1;
}

/** Sends a file but its last byte, and that later. @returns {Promise<number>} the status */
function upload(port, head, file) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('a connection was closed without a response')));
    socket.on('data', (data) => {
      resolve(Number(/^HTTP\/1.1 (\d+)/.exec(data.toString('latin1'))?.[1]));
      socket.destroy();
    });
    socket.write(head);
    socket.write(file.subarray(0, -1));
    setTimeout(() => socket.destroyed || socket.write(file.subarray(-1)), HELD_BACK_MS);
  });
}

function renderFile() {
  const header = 'first_name,email,other\n';
  const rowBytes = Math.floor((FILE_BYTES - header.length) / ROWS);
  const rows = Array.from({ length: ROWS }, (_, i) =>
    `Guest,guest${i}@example.com,`.padEnd(rowBytes - 1, 'x'),
  );
  return Buffer.from(`${header}${rows.join('\n')}\n`);
}

const count = (values, value) => values.filter((one) => one === value).length;

function readMemory(pid) {
  const [, kib] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * 1024;
}
