import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import {
  startPostgres,
  type EmbeddedPostgres,
} from '../../apps/cli/local-postgres/embedded-postgres.mjs';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import {
  startEventStoreDbProcess,
  type EventStoreDbProcess,
} from '../support/emulators/eventstoredb/as-process.mjs';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { findFreePort, runNode, startProgram, type Program } from '../support/services/program.js';

export type Engine = 'postgresql' | 'eventstoredb';

const POSTGRES = { max_connections: 300 };
const API = 'dist/apps/api/main.js';
const DISPATCHER = 'dist/apps/dispatcher/main.js';

/** Runs a process of the service, with its own connections to what it depends on, and restarts it when it ends. */
export class Process {
  private program: Program | undefined;
  private isStopping = false;
  private restart: Promise<void> = Promise.resolve();
  startCount = 0;
  private formerOutput = '';

  constructor(
    readonly name: string,
    private readonly file: string,
    private readonly environment: NodeJS.ProcessEnv,
    readonly connections: Record<string, DatabaseProxy>,
  ) {}

  /** The end of its output, over all its starts. */
  get log(): string {
    return (this.formerOutput + (this.program?.output() ?? '')).slice(-8_000);
  }

  start(): void {
    this.startCount++;
    const program = startProgram(this.file, this.environment);
    this.program = program;
    this.restart = program.exitCode.then(async () => {
      this.formerOutput = this.log;
      this.program = undefined;
      if (this.isStopping) return;
      await wait(200);
      if (!this.isStopping) this.start();
    });
  }

  /** Kills it as the kernel does when memory runs out. */
  async kill(): Promise<void> {
    await this.program?.kill('SIGKILL');
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.program?.signal(signal);
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    this.program?.signal('SIGCONT');
    await this.program?.kill('SIGTERM');
    await this.restart;
  }
}

/** Runs a whole service: two apis, two dispatchers, PostgreSQL and, if it has the events, an EventStoreDB emulator. */
export class Stack {
  readonly apis: Process[] = [];
  readonly dispatchers: Process[] = [];
  /** Proxies between the clients and the apis. */
  readonly apiProxies: DatabaseProxy[] = [];
  /** The folder of the signed checkpoints. */
  readonly checkpointDir: string;
  token = '';
  accountId = 0;
  /** Connects to the database itself, without a proxy. */
  private readonly directPool: pg.Pool;

  private constructor(
    readonly engine: Engine,
    private readonly dataDir: string,
    public postgres: EmbeddedPostgres,
    public eventStoreDb: EventStoreDbProcess | undefined,
    private readonly environment: NodeJS.ProcessEnv,
  ) {
    this.checkpointDir = String(environment['CHECKPOINT_DIR']);
    this.directPool = new pg.Pool({ connectionString: postgres.ownerUrl, max: 1 });
    // PostgreSQL is killed now and then.
    this.directPool.on('error', () => undefined);
  }

  static async start(engine: Engine): Promise<Stack> {
    const dataDir = mkdtempSync(join(tmpdir(), 'inkpad-chaos-'));
    const postgres = await startPostgres({ dataDir, tie: true, settings: POSTGRES });
    const events =
      engine === 'eventstoredb' ? await startEventStore(dataDir, await findFreePort()) : undefined;
    // The first dispatcher creates the checkpoint key in it.
    const keyDir = mkdtempSync(join(tmpdir(), 'inkpad-chaos-key-'));
    const environment = createTestEnvironment(postgres.url, {
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
    const store = JSON.parse(stack.run('setup')) as { api_token: string; account_id: number };
    stack.token = store.api_token;
    stack.accountId = store.account_id;
    for (const number of [1, 2]) {
      const port = await findFreePort();
      stack.apis.push(
        await stack.startServiceProcess(`api ${number}`, API, { PORT: String(port) }),
      );
      stack.apiProxies.push(await DatabaseProxy.to(`http://127.0.0.1:${port}`));
      stack.dispatchers.push(
        await stack.startServiceProcess(`dispatcher ${number}`, DISPATCHER, {}),
      );
    }
    return stack;
  }

  get urls(): string[] {
    return this.apiProxies.map(({ url }) => url.replace(/\/$/, ''));
  }

  get processes(): Process[] {
    return [...this.apis, ...this.dispatchers];
  }

  async query<R>(text: string, ...values: unknown[]): Promise<R[]> {
    return (await this.directPool.query(text, values)).rows as R[];
  }

  /** Runs an npm script, without a proxy. @throws with its output when it fails */
  run(script: 'migrate' | 'setup' | 'verify' | 'cli', ...args: string[]): string {
    const { status, output } = runNode([`dist/apps/cli/${script}.js`, ...args], this.environment);
    if (status !== 0) throw new Error(`${script} ended with ${status}:\n${output}`);
    return output;
  }

  /** Waits for a checkpoint of all events. */
  async waitForCheckpoint(): Promise<void> {
    await eventually(
      async () => {
        const [row] = await this.query<{ missing: number }>(
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
    this.eventStoreDb = await startEventStore(this.dataDir, this.eventStoreDb.port);
  }

  /** Expires the leases of dead processes at once, instead of after a minute. */
  async expireLeases(): Promise<void> {
    await this.query('update es.intents set leased_until = now()');
    // One statement for each key, because commits lock several in another order.
    const running = 'select key from es.stored_responses where status is null';
    for (const { key } of await this.query<{ key: Buffer }>(running)) {
      await this.query(
        'update es.stored_responses set leased_until = now() where key = $1 and status is null',
        key,
      );
    }
  }

  async stop(): Promise<void> {
    for (const proxy of this.proxies) proxy.unmute();
    await Promise.all(this.processes.map((process) => process.stop()));
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
    await this.directPool.end();
    await this.eventStoreDb?.kill();
    await this.postgres.remove();
    rmSync(String(this.environment['DATA_DIR']), { recursive: true });
  }

  private get proxies(): DatabaseProxy[] {
    return [
      ...this.apiProxies,
      ...this.processes.flatMap(({ connections }) => Object.values(connections)),
    ];
  }

  private async startServiceProcess(
    name: string,
    file: string,
    more: NodeJS.ProcessEnv,
  ): Promise<Process> {
    const database = await DatabaseProxy.to(this.postgres.url);
    const events =
      this.eventStoreDb && (await DatabaseProxy.to(this.eventStoreDb.connectionString));
    const environment = {
      ...this.environment,
      ...more,
      DATABASE_URL: database.url,
      ...(events && { EVENT_STORE_URL: events.url }),
    };
    const serviceProcess = new Process(name, file, environment, {
      database,
      ...(events && { events }),
    });
    serviceProcess.start();
    return serviceProcess;
  }
}

/** Starts the emulator, as slow as a real server, with its log in a file, so that confirmed appends survive a kill. */
function startEventStore(dataDir: string, port: number): Promise<EventStoreDbProcess> {
  const log = join(dataDir, 'eventstoredb.log');
  return startEventStoreDbProcess(['--port', String(port), '--log', log, '--delays']);
}
