import { spawn } from 'node:child_process';
import pg from 'pg';

/**
 * Runs the built api as its users do, and beside it what executes an operator's commands and, in place of a
 * dispatcher, fills the history, until the process that has forked this one is gone.
 */
const built = (file) => import(new URL(`../../../dist/${file}`, import.meta.url).href);

const api = spawn(process.execPath, ['dist/apps/api/main.js'], {
  env: process.env,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const ended = new Promise((resolve) => api.once('exit', resolve));
const baseUrl = new Promise((resolve) => {
  let output = '';
  api.stdout.on('data', (chunk) => {
    output += chunk;
    const listening = /listening on (\S+)/.exec(output);
    if (listening) resolve(listening[1]);
  });
});
process.once('disconnect', async () => {
  api.kill('SIGTERM');
  await ended;
  process.exit();
});

const [
  { CommandBus },
  { withServices },
  { LeaderLock },
  { ProcessLink },
  { EventStore },
  { EventTypes },
  { Followers },
  { HistoryTable },
  { HistorySubscription },
  { StatisticsTable },
  { StatisticsSubscription },
  { StampingModule },
  ...modules
] = await Promise.all([
  import('@nestjs/cqrs'),
  built('apps/cli/command-services.js'),
  built('libs/platform/database/leader-lock.js'),
  built('libs/platform/database/process-link.js'),
  built('libs/platform/event-store/port/event-store.js'),
  built('libs/platform/event-store/port/event-types.js'),
  built('libs/platform/event-store/log/followers.service.js'),
  built('libs/loyalty/history/history-table.service.js'),
  built('libs/loyalty/history/history.subscription.js'),
  built('libs/loyalty/statistics/statistics-table.service.js'),
  built('libs/loyalty/statistics/statistics.subscription.js'),
  built('libs/loyalty/stamping/stamping.module.js'),
  built('libs/loyalty/stamping/customer-card.commands.js'),
  built('libs/identity/identity.commands.js'),
  built('libs/identity/member.commands.js'),
  built('libs/identity/token.commands.js'),
  built('libs/loyalty/accounts/account.commands.js'),
]);
const commands = Object.assign({}, ...modules);

await withServices(
  async (app) => {
    const bus = app.get(CommandBus);
    process.on('message', async ({ id, name, fields }) => {
      const command = Object.assign(Object.create(commands[name].prototype), fields);
      const [result] = await Promise.allSettled([bus.execute(command)]);
      process.send({ id, ...result });
    });
    const filling = new AbortController();
    const history = new HistorySubscription(
      app.get(Followers),
      new HistoryTable(app.get(pg.Pool), app.get(EventTypes), app.get(EventStore)),
    ).run(filling.signal);
    const statistics = new StatisticsSubscription(
      new StatisticsTable(app.get(pg.Pool)),
      app.get(LeaderLock),
      app.get(ProcessLink),
    ).run(filling.signal);
    process.send({ baseUrl: await baseUrl });
    await ended;
    filling.abort();
    await Promise.all([history, statistics]);
  },
  [StampingModule],
);
