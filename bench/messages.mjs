import { createServer } from 'node:net';
import { parseArgs } from 'node:util';
import { createTransport } from 'nodemailer';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { sleep } from '../apps/cli/processes.mjs';
import { Connection, postRequest } from './connection.mjs';
import { cpuTime, cpuTimeOf, cpuTimeOfFamily } from './cpu-time.mjs';
import { median, ms, quantile, ratio, table, us, whole } from './figures.mjs';
import { enrolMany, startInkpad } from './inkpad.mjs';
import { freePort, onStage } from './stage.mjs';
import { stampBody } from './stamp-body.mjs';

/** For 10,000 recipients; less for fewer. */
const FLOOR_SECONDS = 60;
const MAX_RECIPIENTS = 10_000;
const MAX_SLOWDOWN = 1.1;
const STAMP_EVERY_MS = 25;
const STAMPED_CARDS = 200;
const ALONE_MS = 15_000;
const POLL_MS = 200;
/** Twice as often as the page in the console. All messages are counted each time. */
const PROGRESS_POLL_MS = 2_000;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: { recipients: { type: 'string', default: String(MAX_RECIPIENTS) } },
  });
  const recipients = Number(values.recipients);
  if (!Number.isInteger(recipients) || recipients < 1 || recipients > MAX_RECIPIENTS) {
    throw new StartFailure(
      `--recipients ${values.recipients}: must be a whole number of at most ${MAX_RECIPIENTS}`,
    );
  }
  return onStage((stage) => measure(stage, recipients));
}

async function measure(stage, recipients) {
  const smtpPort = await freePort();
  const inbox = await openInbox(smtpPort);
  const { env, accountId, pid, port, token, enrol, verify } = await startInkpad(
    stage,
    'bench_messages',
    {
      SMTP_URL: `smtp://127.0.0.1:${smtpPort}`,
      MAIL_FROM: 'Inkpad <inkpad@bench.example>',
      STORE_QUOTAS: `mails_per_day=${2 * MAX_RECIPIENTS}`,
    },
  );
  const dispatcher = stage.start('dist/apps/dispatcher/main.js', { env });
  const store = `/api/v1/accounts/${accountId}`;
  const request = async (path, init = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${store}${path}`, {
      ...init,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        ...init.headers,
      },
    });
    const body = await response.json();
    if (!response.ok) throw new Error(`${path}: ${JSON.stringify(body)}`);
    return body;
  };
  const waitFor = async (path, isReached, pollMs = POLL_MS) => {
    for (;;) {
      stage.abort.signal.throwIfAborted();
      const current = await request(path);
      if (isReached(current)) return current;
      await sleep(pollMs);
    }
  };

  const paths = await enrolMany(enrol, STAMPED_CARDS);
  const [{ id: cardId }] = await request('/cards');
  const { id: importId } = await request(`/imports?card_id=${cardId}`, {
    method: 'POST',
    body: renderFile(recipients),
    headers: { 'content-type': 'text/csv' },
  });
  await waitFor(`/imports/${importId}`, ({ state }) => state === 'done');

  // Else nothing is sent at night.
  await request('/message_settings', {
    method: 'PATCH',
    body: JSON.stringify({ quiet_from: null, quiet_to: null }),
  });

  const connection = await Connection.open(port);
  let nth = 0;
  /** Stamps at a steady pace, as tills do, until `until` is settled. */
  const stampUntil = async (until) => {
    const times = [];
    let isOver = false;
    void until.finally(() => (isOver = true));
    while (!isOver) {
      const pause = sleep(STAMP_EVERY_MS);
      const start = performance.now();
      const { status } = await connection.send(
        postRequest(paths[nth++ % paths.length], token, stampBody),
      );
      if (status !== 200) throw new Error(`a stamp responded with ${status}`);
      times.push(performance.now() - start);
      await pause;
    }
    return times;
  };
  await stampUntil(sleep(3_000));
  const alone = await stampUntil(sleep(ALONE_MS));

  const { id } = await request('/announcements', {
    method: 'POST',
    body: JSON.stringify({
      title: 'Closed on Monday',
      text: 'We are back on Tuesday at eight.',
      channels: ['email'],
    }),
  });
  const parts = {
    api: () => cpuTime(pid),
    dispatcher: () => cpuTime(dispatcher.pid),
    postgres: () => cpuTimeOfFamily(stage.postgres.pid),
  };
  const start = performance.now();
  await request(`/announcements/${id}/send`, { method: 'POST', body: '{}' });
  const { result, used } = await cpuTimeOf(parts, async () => {
    const sending = waitFor(
      `/announcements/${id}`,
      ({ state }) => state === 'sent',
      PROGRESS_POLL_MS,
    );
    const times = await stampUntil(sending);
    return { times, seconds: (performance.now() - start) / 1000, ...(await sending) };
  });
  connection.close();
  const received = inbox.addresses.size;
  if (result.counts.sent !== recipients || received !== recipients || inbox.count !== recipients) {
    throw new Error(
      `${recipients} were to get one e-mail: ${JSON.stringify(result.counts)}, ${inbox.count} arrived at ${received}`,
    );
  }
  const bareSeconds = await sendBare(smtpPort, recipients);
  inbox.close();
  console.log(
    table([
      [`${whole(recipients)} e-mails`, 's', 'a second', 'dispatcher µs', 'PostgreSQL µs'],
      [
        'Inkpad',
        result.seconds.toFixed(1),
        whole(recipients / result.seconds),
        ...['dispatcher', 'postgres'].map((part) =>
          us(used[part] === null ? null : used[part] / recipients),
        ),
      ],
      [
        'Nodemailer alone, four connections',
        bareSeconds.toFixed(1),
        whole(recipients / bareSeconds),
        '-',
        '-',
      ],
    ]),
  );
  const slowdown = median(result.times) / median(alone);
  console.log(
    table([
      ['a stamp', 'median ms', 'p99 ms'],
      ['without e-mails', ms(median(alone)), ms(quantile(alone, 0.99))],
      ['while they are sent', ms(median(result.times)), ms(quantile(result.times, 0.99))],
    ]),
  );
  console.log(`${ratio(slowdown)} times as long while e-mails are sent`);
  console.log(await verify());
  const floor = FLOOR_SECONDS * (recipients / MAX_RECIPIENTS);
  const isQuick = result.seconds <= floor;
  const isUnhindered = slowdown <= MAX_SLOWDOWN;
  console.log(
    `${isQuick ? 'PASS' : 'FAIL'}: ${result.seconds.toFixed(1)} s (at most ${floor.toFixed(1)} s)`,
  );
  console.log(`${isUnhindered ? 'PASS' : 'FAIL'}: stamps (at most ${ratio(MAX_SLOWDOWN)} times)`);
  return isQuick && isUnhindered ? 0 : 1;
}

/** Sends the same number of small e-mails as a script of one's own would, without a record of them. */
async function sendBare(port, recipients) {
  const transport = createTransport({
    host: '127.0.0.1',
    port,
    pool: true,
    maxConnections: 4,
    maxMessages: Infinity,
  });
  const start = performance.now();
  await Promise.all(
    Array.from({ length: recipients }, (_, i) =>
      transport.sendMail({
        from: 'bench@bench.example',
        to: `bare${i}@example.com`,
        subject: 'Closed on Monday',
        text: 'We are back on Tuesday at eight.',
      }),
    ),
  );
  const seconds = (performance.now() - start) / 1000;
  transport.close();
  return seconds;
}

/** A mail server that accepts everything (RFC 5321), and counts. */
async function openInbox(port) {
  const inbox = { count: 0, addresses: new Set(), close: () => server.close() };
  const server = createServer({ noDelay: true }, (socket) => {
    let input = '';
    let isText = false;
    const reply = (text) => socket.write(`${text}\r\n`);
    socket.setEncoding('latin1').on('error', () => socket.destroy());
    reply('220 bench.example ESMTP');
    socket.on('data', (data) => {
      input += data;
      for (;;) {
        const end = isText ? input.indexOf('\r\n.\r\n') : input.indexOf('\r\n');
        if (end === -1) return;
        const line = input.slice(0, end);
        input = input.slice(end + (isText ? 5 : 2));
        if (isText) {
          inbox.count++;
          isText = false;
          reply('250 accepted');
          continue;
        }
        const verb = line.slice(0, 4).toUpperCase();
        if (verb === 'EHLO') reply('250-bench.example\r\n250 PIPELINING');
        else if (verb === 'DATA') {
          isText = true;
          reply('354 go on');
        } else if (verb === 'QUIT') {
          reply('221 bye');
          socket.end();
        } else {
          if (verb === 'RCPT') inbox.addresses.add(line);
          reply('250 ok');
        }
      }
    });
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  return inbox;
}

function renderFile(rows) {
  const lines = ['first_name,email,marketing_consent'];
  for (let i = 0; i < rows; i++) lines.push(`Anna ${i},reader${i}@example.com,yes`);
  return `${lines.join('\r\n')}\r\n`;
}
