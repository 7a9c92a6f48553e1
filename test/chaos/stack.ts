import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { startPostgres, type EmbeddedPostgres } from '../../scripts/embedded-postgres.mjs';
import { testEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import {
  startEventStoreDbProcess,
  type EventStoreDbProcess,
} from '../support/emulators/eventstoredb/as-process.mjs';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { freePort, runNode, startProgram, type Program } from '../support/services/program.js';

export type Engine = 'postgresql' | 'eventstoredb';

const POSTGRES = { max_connections: 300 };
const API = 'dist/apps/api/src/main.js';
const DISPATCHER = 'dist/apps/dispatcher/src/main.js';

/** One process of the service, with lines of its own to what it depends on. It is started again when it ends. */
export class Process {
  private program: Program | undefined;
  private stopping = false;
  private watch: Promise<void> = Promise.resolve();
  starts = 0;
  private before = '';

  constructor(
    readonly name: string,
    private readonly file: string,
    private readonly environment: NodeJS.ProcessEnv,
    readonly lines: Record<string, DatabaseProxy>,
  ) {}

  /** The last that it wrote, over all its starts. */
  get log(): string {
    return (this.before + (this.program?.output() ?? '')).slice(-8_000);
  }

  start(): void {
    this.starts++;
    const program = startProgram(this.file, this.environment);
    this.program = program;
    this.watch = program.exitCode.then(async () => {
      this.before = this.log;
      this.program = undefined;
      if (this.stopping) return;
      await wait(200);
      if (!this.stopping) this.start();
    });
  }

  /** As the kernel does it to one that takes too much memory. */
  async kill(): Promise<void> {
    await this.program?.kill('SIGKILL');
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.program?.signal(signal);
  }

  async stop(): Promise<void> {
    this.stopping = true;
    this.program?.signal('SIGCONT');
    await this.program?.kill('SIGTERM');
    await this.watch;
  }
}

/** A whole service: two apis, two dispatchers, PostgreSQL and, where events live there, EventStoreDB. */
export class Stack {
  readonly apis: Process[] = [];
  readonly dispatchers: Process[] = [];
  /** Between the callers and the apis. */
  readonly fronts: DatabaseProxy[] = [];
  /** The folder of the signed checkpoints. */
  readonly checkpoints: string;
  token = '';
  accountId = 0;
  /** To the database itself, past all lines. */
  private readonly direct: pg.Pool;

  private constructor(
    readonly engine: Engine,
    private readonly dataDir: string,
    public postgres: EmbeddedPostgres,
    public eventStoreDb: EventStoreDbProcess | undefined,
    private readonly environment: NodeJS.ProcessEnv,
  ) {
    this.checkpoints = String(environment['CHECKPOINT_DIR']);
    this.direct = new pg.Pool({ connectionString: postgres.ownerUrl, max: 1 });
    // It is killed with everything else.
    this.direct.on('error', () => undefined);
  }

  static async start(engine: Engine): Promise<Stack> {
    const dataDir = mkdtempSync(join(tmpdir(), 'inkpad-chaos-'));
    const postgres = await startPostgres({ dataDir, tie: true, settings: POSTGRES });
    const events =
      engine === 'eventstoredb' ? await startEvents(dataDir, await freePort()) : undefined;
    // The first dispatcher makes the key.
    const keyDir = mkdtempSync(join(tmpdir(), 'inkpad-chaos-key-'));
    const environment = testEnvironment(postgres.url, {
      DATABASE_MIGRATION_URL: postgres.ownerUrl,
      LOG_LEVEL: 'error',
      WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
      WEBHOOK_TIME_SCALE: '20',
      RATE_LIMIT_PER_MINUTE: '1000000',
      STORE_RATE_LIMIT_PER_MINUTE: '1000000',
      DATA_DIR: keyDir,
      CHECKPOINT_DIR: mkdtempSync(join(keyDir, 'checkpoints-')),
      ...(events && { EVENT_STORE_URL: events.connectionString }),
    });
    const stack = new Stack(engine, dataDir, postgres, events, environment);
    stack.run('migrate');
    const created = JSON.parse(stack.run('setup')) as { api_token: string; account_id: number };
    stack.token = created.api_token;
    stack.accountId = created.account_id;
    for (const nth of [1, 2]) {
      const port = await freePort();
      stack.apis.push(await stack.process(`api ${nth}`, API, { PORT: String(port) }));
      stack.fronts.push(await DatabaseProxy.to(`http://127.0.0.1:${port}`));
      stack.dispatchers.push(await stack.process(`dispatcher ${nth}`, DISPATCHER, {}));
    }
    return stack;
  }

  get urls(): string[] {
    return this.fronts.map(({ url }) => url.replace(/\/$/, ''));
  }

  get processes(): Process[] {
    return [...this.apis, ...this.dispatchers];
  }

  async ask<R>(text: string, ...values: unknown[]): Promise<R[]> {
    return (await this.direct.query(text, values)).rows as R[];
  }

  /** A script of npm, past all lines. @throws with its output when it fails */
  run(script: 'migrate' | 'setup' | 'verify' | 'cli', ...args: string[]): string {
    const { status, output } = runNode([`dist/scripts/${script}.js`, ...args], this.environment);
    if (status !== 0) throw new Error(`${script} ended with ${status}:\n${output}`);
    return output;
  }

  /** Waits for a checkpoint of all events. */
  async signed(): Promise<void> {
    await eventually(
      async () => {
        const [row] = await this.ask<{ missing: number }>(
          `select ((select count(*) from history) - checkpoint_size)::int as missing,
             pg_notify('inkpad_checkpoint', '') from transparency_log`,
        );
        return row?.missing;
      },
      (missing) => missing === 0,
      240_000,
    );
  }

  async killPostgres(): Promise<void> {
    process.kill(this.postgres.pid, 'SIGKILL');
    await this.postgres.exited;
    await eventually(
      async () => {
        try {
          const { dataDir, postgres } = this;
          const { port } = postgres;
          this.postgres = await startPostgres({ dataDir, port, tie: true, settings: POSTGRES });
          return 'running';
        } catch (error) {
          return String(error);
        }
      },
      (state) => state === 'running',
    );
  }

  async killEventStoreDb(): Promise<void> {
    if (!this.eventStoreDb) return;
    await this.eventStoreDb.kill('SIGKILL');
    this.eventStoreDb = await startEvents(this.dataDir, this.eventStoreDb.port);
  }

  /** Expires the leases of dead processes at once, instead of after a minute. */
  async endLeases(): Promise<void> {
    await this.ask('update es.intents set leased_until = now()');
    // One statement for each key: commits lock several, in an order of their own.
    const running = 'select key from es.stored_responses where status is null';
    for (const { key } of await this.ask<{ key: Buffer }>(running)) {
      await this.ask(
        'update es.stored_responses set leased_until = now() where key = $1 and status is null',
        key,
      );
    }
  }

  async stop(): Promise<void> {
    for (const line of this.lines) line.unmute();
    await Promise.all(this.processes.map((one) => one.stop()));
    await Promise.all(this.lines.map((line) => line.close()));
    await this.direct.end();
    await this.eventStoreDb?.kill();
    await this.postgres.remove();
    rmSync(String(this.environment['DATA_DIR']), { recursive: true });
  }

  private get lines(): DatabaseProxy[] {
    return [...this.fronts, ...this.processes.flatMap(({ lines }) => Object.values(lines))];
  }

  private async process(name: string, file: string, more: NodeJS.ProcessEnv): Promise<Process> {
    const database = await DatabaseProxy.to(this.postgres.url);
    const events =
      this.eventStoreDb && (await DatabaseProxy.to(this.eventStoreDb.connectionString));
    const environment = {
      ...this.environment,
      ...more,
      DATABASE_URL: database.url,
      ...(events && { EVENT_STORE_URL: events.url }),
    };
    const started = new Process(name, file, environment, { database, ...(events && { events }) });
    started.start();
    return started;
  }
}

/** Its log is a file: what it has answered is there after a kill. */
function startEvents(dataDir: string, port: number): Promise<EventStoreDbProcess> {
  const log = join(dataDir, 'eventstoredb.log');
  return startEventStoreDbProcess(['--port', String(port), '--log', log]);
}
