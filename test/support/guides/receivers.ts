import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../jest/eventually.js';
import { startCommand, type Program } from '../services/program.js';

/** Runs the files of docs/receivers. */

export type ReceiverLanguage = {
  file: string;
  /** The Debian package that has the program. */
  debian: string;
  prepare?: string[];
  receive: (port: number) => string[];
  /** The command of a second process that handles the events, where there is one. */
  work?: string[];
};

export const RECEIVERS: Record<string, ReceiverLanguage> = {
  'Node.js': {
    file: 'receiver.mjs',
    debian: 'nodejs',
    receive: () => [process.execPath, 'receiver.mjs'],
  },
  Python: {
    file: 'receiver.py',
    debian: 'python3-cryptography',
    receive: () => ['python3', 'receiver.py'],
  },
  Go: {
    file: 'receiver.go',
    debian: 'golang-go',
    prepare: ['go', 'build', '-o', 'receiver', 'receiver.go'],
    receive: () => ['./receiver'],
  },
  Java: {
    file: 'Receiver.java',
    debian: 'default-jdk-headless',
    receive: () => ['java', 'Receiver.java'],
  },
  PHP: {
    file: 'receiver.php',
    debian: 'php-cli',
    receive: (port) => ['php', '-S', `127.0.0.1:${port}`, 'receiver.php'],
    work: ['php', 'receiver.php'],
  },
};

/** Copies a file of docs/receivers into a new folder. */
export function copySample(file: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'inkpad-receiver-'));
  copyFileSync(join('docs/receivers', file), join(folder, file));
  return folder;
}

/** Copies and compiles a receiver. @returns its folder @throws Error if its language is not installed */
export function prepareReceiver({ file, debian, prepare, receive }: ReceiverLanguage): string {
  const folder = copySample(file);
  const [program = ''] = receive(0);
  const [first = program, ...rest] = prepare ?? [program, '--version'];
  // Compiling its standard library takes Go 16 s of processor time.
  const env = { ...process.env, GOCACHE: join(homedir(), '.cache/go-build') };
  const result = spawnSync(first, rest, { cwd: folder, encoding: 'utf8', env });
  if (result.error) throw new Error(`${first} is missing: apt-get install ${debian}`);
  if (prepare && result.status !== 0) throw new Error(result.stderr);
  return folder;
}

/** Starts the processes of a receiver, and waits until it responds. */
export async function startReceiver(
  { receive, work }: ReceiverLanguage,
  folder: string,
  { secret, port }: { secret: string; port: number },
): Promise<Program[]> {
  const environment = {
    HOME: folder,
    WEBHOOK_SECRET: secret,
    PORT: String(port),
    EVENTS_DIR: join(folder, 'events'),
  };
  const commands = [receive(port), ...(work ? [work] : [])];
  const programs = commands.map((command) => startCommand(command, environment, { cwd: folder }));
  await eventually(
    () =>
      fetch(`http://127.0.0.1:${port}/`).then(
        ({ status }) => status,
        () => 0,
      ),
    (status) => status > 0,
  );
  return programs;
}
