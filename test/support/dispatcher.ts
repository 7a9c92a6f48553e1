import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { testEnvironment } from './database.js';
import { eventually } from './eventually.js';
import type { Service } from './service.js';

/** Dispatchers as they run, processes of their own beside a service under test. */
export class Dispatchers {
  private readonly running = new Set<ChildProcess>();

  constructor(private readonly service: () => Service) {}

  /** Waits until it can be told to stop. */
  async start(environment: NodeJS.ProcessEnv = {}): Promise<ChildProcess> {
    const service = this.service();
    const dispatcher = spawn(process.execPath, ['dist/apps/dispatcher/src/main.js'], {
      env: {
        ...process.env,
        ...testEnvironment(service.database.url, {
          ...service.environment,
          WEBHOOK_TIME_SCALE: '100',
          ...environment,
          LOG_LEVEL: 'info',
        }),
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.running.add(dispatcher);
    let said = '';
    dispatcher.stdout?.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    await eventually(
      () => said,
      (text) => text.includes('started'),
    );
    return dispatcher;
  }

  async end(dispatcher: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
    this.running.delete(dispatcher);
    if (dispatcher.exitCode !== null) return dispatcher.exitCode;
    const exited = once(dispatcher, 'exit');
    dispatcher.kill(signal);
    const [code] = (await exited) as [number | null];
    return code;
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.running].map((dispatcher) => this.end(dispatcher, 'SIGTERM')));
  }
}
