import type { EventStoreDb, EventStoreDbOptions } from './server.mjs';

export type EventStoreDbCluster = {
  readonly nodes: EventStoreDb[];
  /** Names all nodes, so that clients discover the leader. */
  readonly connectionString: string;
  /** Undefined during an election. */
  readonly leader: EventStoreDb | undefined;
  /** Kills the leader. After the election another node leads; the former one may listen again, as a follower. */
  changeLeader(electionMs: number): Promise<void>;
  stop(): Promise<void>;
};

/** Three nodes without TLS. */
export function startEventStoreDbCluster(
  options?: Omit<EventStoreDbOptions, 'port' | 'users' | 'tls' | 'leaderless'>,
): Promise<EventStoreDbCluster>;
