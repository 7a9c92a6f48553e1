import type { Faults } from './server.mjs';

type State = { connectionString: string; appended: number; subscriptions: number };

export type EventStoreDbProcess = {
  readonly pid: number | undefined;
  readonly connectionString: string;
  readonly port: number;
  state(): Promise<State>;
  control<Name extends keyof Faults>(
    name: Name,
    ...values: Parameters<Faults[Name]>
  ): Promise<State>;
  control(name: 'stopListening' | 'listenAgain'): Promise<State>;
  /** Freezes the process with everything that clients send meanwhile, or lets it go on. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  kill(signal?: NodeJS.Signals): Promise<void>;
};

export function startEventStoreDbProcess(parameters?: string[]): Promise<EventStoreDbProcess>;
