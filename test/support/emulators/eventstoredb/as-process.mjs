import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('main.mjs', import.meta.url));

/**
 * Starts the store in a process of its own and resolves when it is ready; it ends with this process at the latest.
 * @param {string[]} [parameters] of main.mjs
 */
export async function startEventStoreDbProcess(parameters = []) {
  const child = spawn(process.execPath, [MAIN, '--tie', ...parameters], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const gone = once(child, 'exit');
  const lines = createInterface({ input: child.stdout });
  const [line] = await Promise.race([
    once(lines, 'line'),
    gone.then(([code]) => {
      throw new Error(`the store exited with ${code} before it was ready`);
    }),
  ]);
  const [, connectionString, , control] = line.split(' ');

  async function sendRequest(path, init) {
    const response = await fetch(new URL(path, control), init);
    const body = await response.json();
    if (!response.ok) throw new Error(body.error);
    return body;
  }
  return {
    pid: child.pid,
    connectionString,
    port: Number(/:(\d+)/.exec(connectionString.replace('esdb:', ''))[1]),
    state: () => sendRequest('/'),
    /** Applies any fault of the server by its name; also `stopListening` and `listenAgain`. */
    control: (name, ...values) =>
      sendRequest(name, { method: 'POST', body: JSON.stringify(values) }),
    signal: (signal) => void child.kill(signal),
    /** @param {NodeJS.Signals} [signal] */
    kill: async (signal = 'SIGKILL') => {
      child.kill(signal);
      await gone;
    },
  };
}
