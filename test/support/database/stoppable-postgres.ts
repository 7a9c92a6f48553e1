import { readdirSync, readFileSync } from 'node:fs';
import type { TestDatabase } from './database.js';

/** The processes of a PostgreSQL on this machine, which do not respond while they are stopped. */
export class StoppableServer {
  private stopped: number[] = [];

  private constructor(private readonly postmaster: number) {}

  static async of(database: Pick<TestDatabase, 'query'>): Promise<StoppableServer> {
    const { rows } = await database.query<{ pid: number }>('select pg_backend_pid() as pid');
    return new StoppableServer(parentOf(rows[0]?.pid ?? 0) ?? 0);
  }

  stop(): void {
    const children = readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && parentOf(pid) === this.postmaster);
    // The postmaster first, so that it starts none in between.
    this.stopped = [this.postmaster, ...children];
    for (const pid of this.stopped) process.kill(pid, 'SIGSTOP');
  }

  goOn(): void {
    for (const pid of this.stopped.splice(0).reverse()) process.kill(pid, 'SIGCONT');
  }
}

function parentOf(pid: number): number | undefined {
  try {
    const [, parent] = /\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return Number(parent);
  } catch {
    return undefined;
  }
}
