import { spawn } from 'node:child_process';
import { connect } from 'node:net';

/**
 * A Redis in a folder of the bench, as durable as BullMQ's documentation recommends for production. This process wraps
 * it so that it ends with the bench, however that ends.
 */
const [dir, port] = process.argv.slice(2);
const redis = spawn(
  'redis-server',
  Object.entries({
    port,
    dir,
    bind: '127.0.0.1',
    save: '',
    appendonly: 'yes',
    appendfsync: 'everysec',
    'maxmemory-policy': 'noeviction',
  }).flatMap(([name, value]) => [`--${name}`, value]),
  { stdio: ['ignore', 'ignore', 'inherit'] },
);
redis.once('error', (error) => {
  throw error;
});
redis.once('exit', (code) => process.exit(code ?? 1));
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => redis.kill('SIGTERM'));

for (;;) {
  const listening = await new Promise((resolve) => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
  if (listening) break;
  await new Promise((resolve) => setTimeout(resolve, 25));
}
process.send({ ready: true });
process.channel?.unref();
