/**
 * Computes the resources of a load from the measured cost of one operation. Pure: figures in, figures out.
 * @typedef {object} Costs µs of processor time
 * @property {number} stampNode @property {number} stampPostgres of one stamp
 * @property {number} deliveryNode @property {number} deliveryPostgres from the commit of a stamp to its recorded 2xx
 * @property {number} planNode of what only the leading dispatcher does with an event: plan, and follow the log
 * @property {number} flushMs of one fsync
 * @property {number} commitGroup stamps that one commit holds at most
 * @property {number} few while fewer stamps than that are in flight, an api waits for no commit before the next
 * @property {number} lanes commits that an api has in flight at most, where a flush takes long
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
export function flushesOf(costs, stamps) {
  const arriving = (stamps * costs.flushMs) / 1_000;
  return { busy: Math.min(1, arriving), inOne: arriving, most: mostInFlight(costs) };
}

/** Stamps of one api, where there are as many as it can commit. */
function mostInFlight({ flushMs, commitGroup, lanes }) {
  return commitGroup * Math.min(lanes, Math.ceil(flushMs / lateAfter(commitGroup)));
}

/** ms after which a commit of that size is waiting for something. */
function lateAfter(size) {
  return 2 + size / 10;
}

/**
 * Finds the first bottleneck as the load of one database grows: stamps a second at which each part has no more room.
 * @param {Costs} costs @param {Load} load @returns {[string, number][]} the narrowest first
 */
export function wallsOf(costs, { deliveries, cores }) {
  const postgres = costs.stampPostgres + deliveries * costs.deliveryPostgres;
  const walls = [
    ['processors of PostgreSQL', (cores * MOST_BUSY * MICROSECONDS) / postgres],
    ['the leading dispatcher', (MOST_BUSY * MICROSECONDS) / costs.planNode],
    ['flushes of one api', (mostInFlight(costs) * 1_000) / costs.flushMs],
  ];
  return walls.sort(([, a], [, b]) => a - b);
}

/**
 * The commits of one api as a queue: stamps arrive at random; a commit takes all that wait, up to a group, and is in flight
 * for a round trip with its flush and for what PostgreSQL works on each. The next waits for it, unless few stamps are in
 * flight or it takes longer than that work alone (`PostgresEventStore`).
 * @param {Costs} costs @param {{ stamps: number, seconds: number, random: () => number }} load of one api
 * @returns {{ p50: number, p99: number, group: number, left: number }} ms waited; stamps in a commit; left at the end
 */
export function simulateCommits(costs, { stamps, seconds, random }) {
  const waited = [];
  let commits = 0;
  let queue = [];
  let inFlight = [];
  const mayCommit = (now) => {
    inFlight = inFlight.filter(({ end }) => end > now);
    const { length } = inFlight;
    const few = inFlight.reduce((sum, { size }) => sum + size, 0) < costs.few;
    return length < costs.lanes && (few || inFlight.every(({ late }) => late <= now));
  };
  const commit = (now) => {
    const group = queue.splice(0, costs.commitGroup);
    const size = group.length;
    const end = now + costs.flushMs + (size * costs.stampPostgres) / 1_000;
    inFlight.push({ size, end, late: now + lateAfter(size) });
    for (const arrived of group) waited.push(end - arrived);
    commits++;
  };
  const nextChange = (now) =>
    Math.min(...inFlight.flatMap(({ late, end }) => [late, end]).filter((time) => time > now));
  const until = seconds * 1_000;
  let now = 0;
  while (now < until) {
    const arrival = now + (-Math.log(1 - random()) * 1_000) / stamps;
    while (queue.length > 0) {
      if (mayCommit(now)) commit(now);
      else if (nextChange(now) > arrival) break;
      else now = nextChange(now);
    }
    now = arrival;
    queue.push(now);
  }
  const sorted = waited.sort((one, other) => one - other);
  const at = (share) => sorted[Math.floor((sorted.length - 1) * share)];
  return { p50: at(0.5), p99: at(0.99), group: waited.length / commits, left: queue.length };
}
