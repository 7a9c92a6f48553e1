/**
 * What a load takes, from what one operation was measured to take. Pure: figures in, figures out.
 * @typedef {object} Costs µs of processor time
 * @property {number} stampNode @property {number} stampPostgres of one stamp
 * @property {number} deliveryNode @property {number} deliveryPostgres from the commit of a stamp to its recorded 2xx
 * @property {number} planNode of what only the leading dispatcher does with an event: plan, and follow the log
 * @property {number} flushMs of one fsync
 * @property {number} commitGroup stamps that one commit holds at most
 * @property {number} lanes commits that an api has in flight
 * @property {number} walBytes that a stamp adds to the write-ahead log
 * @property {number} diskBytes that a stamp with its delivery leaves behind
 *
 * @typedef {object} Load
 * @property {number} stores @property {number} stamps a second @property {number} deliveries for each stamp
 * @property {number} databases over which the stores are split
 * @property {number} cores of each PostgreSQL primary
 */

/** How busy a core may be on average. Above it, waiting times grow without bound at the first burst. */
const MOST_BUSY = 0.7;
const DAY_SECONDS = 86_400;
const MICROSECONDS = 1e6;

/**
 * @param {Costs} costs @param {Load} load
 */
export function demandOf(costs, load) {
  const { stamps, databases } = load;
  const sent = stamps * load.deliveries;
  const apiCores = (stamps * costs.stampNode) / MICROSECONDS / MOST_BUSY;
  const dispatcherCores = (sent * costs.deliveryNode) / MICROSECONDS / MOST_BUSY;
  const postgresCores =
    (stamps * costs.stampPostgres + sent * costs.deliveryPostgres) /
    MICROSECONDS /
    MOST_BUSY /
    databases;
  return {
    apiCores,
    dispatcherCores,
    postgresCores,
    leaderBusy: (stamps * costs.planNode) / MICROSECONDS / databases,
    flushes: flushesOf(costs, stamps / databases),
    walMegabytes: ((stamps / databases) * costs.walBytes) / 1e6,
    gigabytesADay: ((stamps / databases) * costs.diskBytes * DAY_SECONDS) / 1e9,
  };
}

/**
 * The share of the time in which the log's disk flushes. Commits that wait share a flush, so that it never exceeds 1 as
 * long as the groups of one api hold what arrives during a flush.
 */
export function flushesOf({ flushMs, commitGroup, lanes }, stamps) {
  const arriving = (stamps * flushMs) / 1_000;
  return { busy: Math.min(1, arriving), inOne: arriving, most: commitGroup * lanes };
}

/**
 * What gives way first as the load of one database grows: stamps a second at which each part has no more room.
 * @param {Costs} costs @param {Load} load @returns {[string, number][]} the narrowest first
 */
export function wallsOf(costs, { deliveries, cores }) {
  const postgres = costs.stampPostgres + deliveries * costs.deliveryPostgres;
  const walls = [
    ['processors of PostgreSQL', (cores * MOST_BUSY * MICROSECONDS) / postgres],
    ['the leading dispatcher', (MOST_BUSY * MICROSECONDS) / costs.planNode],
    ['flushes of one api', (costs.commitGroup * costs.lanes * 1_000) / costs.flushMs],
  ];
  return walls.sort(([, a], [, b]) => a - b);
}

/**
 * Commit lanes as a queue: stamps arrive at random; a lane that is free takes all that wait, up to a group, and is busy
 * for a round trip with its flush and for what PostgreSQL works on each.
 * @param {Costs} costs @param {{ stamps: number, seconds: number, random: () => number }} load of one api
 * @returns {{ p50: number, p99: number, group: number, left: number }} ms waited; stamps in a commit; left at the end
 */
export function simulateLanes(costs, { stamps, seconds, random }) {
  const free = Array.from({ length: costs.lanes }, () => 0);
  const waited = [];
  let commits = 0;
  let queue = [];
  const commit = (at) => {
    const lane = free.indexOf(Math.min(...free));
    const group = queue.slice(0, costs.commitGroup);
    queue = queue.slice(costs.commitGroup);
    free[lane] = at + costs.flushMs + (group.length * costs.stampPostgres) / 1_000;
    for (const arrived of group) waited.push(free[lane] - arrived);
    commits++;
  };
  const end = seconds * 1_000;
  for (let at = 0; at < end; at += (-Math.log(1 - random()) * 1_000) / stamps) {
    for (let next = Math.min(...free); queue.length > 0 && next <= at; next = Math.min(...free)) {
      commit(Math.max(next, queue[0]));
    }
    queue.push(at);
    if (Math.min(...free) <= at) commit(at);
  }
  const sorted = waited.sort((a, b) => a - b);
  const at = (share) => sorted[Math.floor((sorted.length - 1) * share)];
  return {
    p50: at(0.5),
    p99: at(0.99),
    group: waited.length / commits,
    left: queue.length,
  };
}
