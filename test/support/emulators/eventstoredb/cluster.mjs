import { setTimeout as wait } from 'node:timers/promises';
import { EventLog } from './event-log.mjs';
import { Members } from './members.mjs';
import { startNode } from './server.mjs';

/**
 * Starts nodes that share one log, as if each append were on all of them before its response. What a leader has not
 * written when it dies is lost.
 * @param {import('./server.d.mts').EventStoreDbOptions} [options]
 */
export async function startEventStoreDbCluster(options = {}) {
  const log = new EventLog({ file: options.log, recentIds: options.recentIds });
  const members = new Members();
  const nodes = [];
  for (let i = 0; i < 3; i += 1) nodes.push(await startNode(options, log, members));
  members.elect();
  const hosts = members.list.map(({ host, port }) => `${host}:${port}`);
  const findLeader = () => nodes.find(({ port }) => port === members.leader?.port);
  return {
    nodes,
    connectionString: `esdb://${hosts.join()}?tls=false`,
    get leader() {
      return findLeader();
    },
    changeLeader: async (electionMs) => {
      await findLeader()?.stopListening();
      await wait(electionMs);
      members.elect();
    },
    stop: async () => {
      for (const node of nodes) await node.stop();
    },
  };
}
