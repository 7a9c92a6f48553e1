import type { Delay } from './server.mjs';

/** How long appends took on real servers: 3 ms alone, 9 to 11 with 16 under way, 12 to 21 with 64. */
export const MEASURED_DELAYS: Delay[];

export function pickDelay(delays: Delay[], appends: number, random?: number): number;
