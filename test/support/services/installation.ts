import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { eventually } from '../jest/eventually.js';
import { findFreePort } from './program.js';

export type Run = {
  starter: { pid: number; started: string };
  base_url: string;
  postgres?: { pid: number; port: number; url: string; owner_url: string; data: string };
  api?: { pid: number };
  dispatcher?: { pid: number };
};

export type Start = {
  process: ChildProcess;
  output: () => string;
  ended: Promise<number | null>;
};

export const root = process.cwd();

/** A data folder and a port of its own for `npm start`. */
export class Installation {
  dataDir = makeDataFolder();
  private readonly starts: Start[] = [];

  private constructor(readonly port: number) {}

  static async create(): Promise<Installation> {
    return new Installation(await findFreePort());
  }

  /** Stops what still runs, and removes the data folder. */
  async remove(): Promise<void> {
    for (const { process: child, ended } of this.starts) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGINT');
      await ended;
    }
    fs.rmSync(this.dataDir, { recursive: true, force: true });
  }

  start(
    settings: NodeJS.ProcessEnv = {},
    [program = '', ...parameters]: string[] = [
      process.execPath,
      path.join(root, 'tools/start/start.mjs'),
    ],
  ): Start {
    let output = '';
    const child = spawn(program, parameters, {
      cwd: root,
      // Empty counts as not given, and wins over a .env file.
      env: {
        ...process.env,
        DATABASE_URL: '',
        PUBLIC_URL: '',
        HOST: '',
        WEBHOOK_ALLOW_INSECURE_TARGETS: '',
        PORT: `${this.port}`,
        METRICS_PORT: '0',
        DATA_DIR: this.dataDir,
        ...settings,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    }
    // Not 'close': what a killed starter leaves running holds its output open.
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const start = { process: child, output: () => output, ended };
    this.starts.push(start);
    return start;
  }

  async isUp({ process: child, output }: Start): Promise<void> {
    await eventually(
      output,
      (text) => child.exitCode !== null || text.includes('Ctrl-C stops Inkpad.'),
    );
    if (child.exitCode !== null) throw new Error(`The start failed:\n${output()}`);
  }

  readJson<T>(name: string): T {
    return JSON.parse(fs.readFileSync(path.join(this.dataDir, name), 'utf8')) as T;
  }

  readRun(): Run {
    return this.readJson<Run>('run.json');
  }

  /** 0 while it is down. */
  readPid(name: 'postgres' | 'api' | 'dispatcher'): number {
    return this.readRun()[name]?.pid ?? 0;
  }

  /** Requests the API with a token. Null when nothing listens. */
  async fetchStatus(host: string, token: string): Promise<number | null> {
    try {
      const response = await fetch(`http://${host}:${this.port}/api/v1/accounts`, {
        headers: { authorization: `Bearer ${token}` },
      });
      await response.arrayBuffer();
      return response.status;
    } catch (error) {
      // What fetch throws for a connection that is refused or cut off; by name, as Jest has its own classes.
      if ((error as Error).name === 'TypeError') return null;
      throw error;
    }
  }
}

export function makeDataFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-start-'));
  // Passable, so that PostgreSQL's own user reaches its data in it when the tests run as root.
  fs.chmodSync(folder, 0o711);
  return folder;
}

export function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
