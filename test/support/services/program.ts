import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once, type EventEmitter } from 'node:events';
import { createServer } from 'node:net';

export type Program = {
  /** Its output so far, without its working directory. */
  output: () => string;
  /** Null if a signal terminated it. */
  exitCode: Promise<number | null>;
  /** Until it has ended. */
  kill: (signal: NodeJS.Signals) => Promise<void>;
  /** For signals that do not end it. */
  signal: (signal: 'SIGSTOP' | 'SIGCONT' | 'SIGUSR2') => void;
};

/** A built program as a separate process, for tests that kill it. */
export function startProgram(
  file: string,
  environment: NodeJS.ProcessEnv,
  parameters: string[] = [],
  /** Its standard input. */
  input?: string,
): Program {
  return startCommand([process.execPath, file, ...parameters], environment, { input });
}

/** Any program as a separate process. */
export function startCommand(
  [program = '', ...parameters]: string[],
  environment: NodeJS.ProcessEnv,
  { cwd, input }: { cwd?: string | undefined; input?: string | undefined } = {},
): Program {
  const child: ChildProcess = spawn(program, parameters, {
    cwd,
    env: { ...inheritEnvironment(), ...environment },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  child.stdin?.end(input);
  let output = '';
  child.stdout?.on('data', (chunk) => (output += String(chunk)));
  child.stderr?.on('data', (chunk) => (output += String(chunk)));
  const gone = once(child, 'exit');
  return {
    output: () => withoutPlace(output),
    exitCode: gone.then(([code]) => code as number | null),
    kill: async (signal) => {
      child.kill(signal);
      await gone;
    },
    signal: (signal) => void child.kill(signal),
  };
}

/** Runs a built program to its end. */
export function runNode(
  args: string[],
  environment: NodeJS.ProcessEnv,
): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    env: { ...inheritEnvironment(), ...environment },
    encoding: 'utf8',
  });
  return { status, output: withoutPlace(stdout + stderr) };
}

/** Environment variables that programs inherit from the tests; each test sets the others. */
function inheritEnvironment(): NodeJS.ProcessEnv {
  const { PATH, TMPDIR, NODE_COMPILE_CACHE } = process.env;
  return { PATH, TMPDIR, NODE_COMPILE_CACHE };
}

/** Removes the lines in which every script first names its database and event store. */
export function withoutPlace(output: string): string {
  return output.replace(/^(database|KurrentDB): .*\n/m, '');
}

/**
 * For a program that needs to know its port in advance, or again after it was killed. Below the range from which
 * operating systems take the local ports of outgoing connections, one of which could have it by then.
 */
export async function findFreePort(): Promise<number> {
  return findFreePorts(1);
}

/** Finds so many ports in a row. @returns the first one */
export async function findFreePorts(count: number): Promise<number> {
  for (;;) {
    const first = randomInt(11_000, 20_000);
    const ports = Array.from({ length: count }, (_, i) => first + i);
    if ((await Promise.all(ports.map(reservePort))).every((isFree) => isFree)) return first;
  }
}

/**
 * Takes the UDP port of the same number until this process ends, so that no other one gives the port away before its
 * program listens or while it is stopped.
 */
async function reservePort(port: number): Promise<boolean> {
  const reservation = createSocket('udp4').unref();
  const server = createServer();
  if (
    !(await isFree(reservation, () => reservation.bind(port, '127.0.0.1'))) ||
    !(await isFree(server, () => server.listen(port, '127.0.0.1')))
  ) {
    reservation.close();
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

/** Tells whether the address that it asks for is free. */
async function isFree(socket: EventEmitter, listen: () => void): Promise<boolean> {
  const listening = once(socket, 'listening');
  listen();
  try {
    await listening;
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return false;
  }
}
