/**
 * @typedef {{ appends: number, ms: [number, number] }} Delay with so many appends under way, one takes that long
 */

/**
 * How long appends took on EventStoreDB 23.10.6 and KurrentDB 26.0.3, on two cores that Inkpad shared.
 * @type {Delay[]}
 */
export const MEASURED_DELAYS = [
  { appends: 1, ms: [3, 3] },
  { appends: 16, ms: [9, 11] },
  { appends: 64, ms: [12, 21] },
];

/**
 * Picks how long an append takes, between the measured points. Beyond the last point it takes longer in proportion,
 * because a server that is saturated writes no faster.
 * @param {Delay[]} delays by rising number of appends
 * @param {number} appends how many are under way, this one included
 * @param {number} random from 0 to 1
 */
export function pickDelay(delays, appends, random = Math.random()) {
  const pick = ({ ms: [shortest, longest] }) => shortest + random * (longest - shortest);
  const after = delays.findIndex((delay) => delay.appends >= appends);
  const right = delays.at(after);
  const left = after > 0 ? delays[after - 1] : right;
  if (after === -1) return (pick(right) * appends) / right.appends;
  if (left === right) return pick(right);
  const share = (appends - left.appends) / (right.appends - left.appends);
  return pick(left) + share * (pick(right) - pick(left));
}

/** Lets appends through in the order of their arrival, each after its delay. */
export class WriteQueue {
  /** @type {Promise<void>} */
  #last = Promise.resolve();

  /**
   * Waits until the delay is over and every append before has been let through.
   * @param {number} ms
   * @param {(ms: number) => Promise<void>} pause
   */
  pass(ms, pause) {
    const dueAt = performance.now() + ms;
    this.#last = this.#last.then(async () => {
      const remainingMs = dueAt - performance.now();
      // A timer takes a millisecond at least, and all others wait for it.
      if (remainingMs > 0) await pause(remainingMs);
    });
    return this.#last;
  }
}
