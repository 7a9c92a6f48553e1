const SHORTEST_MS = 5_000;

/**
 * Draws how long to wait before work that is announced is looked for without an announcement: 5 to 10 s. At random, so
 * that an idle process seldom uses several connections at a time.
 */
export const drawPollMs = (): number => SHORTEST_MS * (1 + Math.random());
