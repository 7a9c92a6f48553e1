import { quantile } from './figures.mjs';

/** Every card once in random order before any comes again, so that two requests rarely meet on one card. */
export function* inRandomOrder(items) {
  const order = [...items];
  for (;;) {
    for (let i = order.length - 1; i > 0; i--) {
      const j = Math.floor(Math.random() * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
    }
    yield* order;
  }
}

/**
 * `concurrency` loops call `act` until the time is over; calls in flight then are finished and counted, and the clock
 * stops with the last of them.
 * @param {(worker: number) => Promise<boolean>} act whether it succeeded
 */
export async function round({ concurrency, seconds }, act) {
  const latencies = [];
  let failures = 0;
  const began = performance.now();
  const end = began + seconds * 1000;
  const loop = async (worker) => {
    for (let start = began; start < end; start = performance.now()) {
      if (await act(worker)) latencies.push(performance.now() - start);
      else failures++;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, (_, worker) => loop(worker)));
  const tookSeconds = (performance.now() - began) / 1000;
  return {
    done: latencies.length,
    failures,
    perSecond: latencies.length / tookSeconds,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
  };
}
