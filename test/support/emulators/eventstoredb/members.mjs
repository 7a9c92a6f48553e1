import { randomUUID } from 'node:crypto';

/**
 * @typedef {{ id: string, host: string, port: number, isAlive: boolean }} Member
 * @typedef {'Leader' | 'Follower' | 'Unknown' | 'Shutdown'} State as `/gossip` names it
 */

/** Keeps the nodes of a cluster, and which of them leads. */
export class Members {
  /** @type {Member[]} */
  list = [];
  /** @type {Member | null} */
  #elected = null;

  /** @param {string} host */
  join(host) {
    const member = { id: randomUUID(), host, port: 0, isAlive: true };
    this.list.push(member);
    return member;
  }

  /** Null until one was elected, and after it has gone. */
  get leader() {
    return this.#elected?.isAlive ? this.#elected : null;
  }

  elect() {
    this.#elected = this.list.find(({ isAlive }) => isAlive) ?? null;
  }

  loseLeader() {
    this.#elected = null;
  }

  /** @param {Member} member @returns {State} */
  getState(member) {
    if (!member.isAlive) return 'Shutdown';
    if (this.leader === null) return 'Unknown';
    return this.leader === member ? 'Leader' : 'Follower';
  }
}
