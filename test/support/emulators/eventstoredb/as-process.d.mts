import type { Faults } from './server.mjs';

type State = { connectionString: string; appended: number; subscriptions: number };

export type EventStoreDbProcess = {
  readonly connectionString: string;
  readonly port: number;
  state(): Promise<State>;
  tell<Name extends keyof Faults>(name: Name, ...given: Parameters<Faults[Name]>): Promise<State>;
  tell(name: 'stopListening' | 'listenAgain'): Promise<State>;
  kill(signal?: NodeJS.Signals): Promise<void>;
};

export function startEventStoreDbProcess(parameters?: string[]): Promise<EventStoreDbProcess>;
