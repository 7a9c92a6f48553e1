import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { Page } from 'playwright-core';

/** Slow 4G, as the developer tools of browsers have it: 1.6 Mbit/s down, 750 kbit/s up, 150 ms for a round trip. */
export const SLOW_4G = {
  offline: false,
  latency: 150,
  downloadThroughput: 1_600_000 / 8,
  uploadThroughput: 750_000 / 8,
};

export type WireBytes = {
  baseUrl: string;
  countReceived: () => number;
  close: () => Promise<void>;
};

/**
 * Forwards connections to a service and counts what comes back: all that a browser receives from it, headers, workers
 * and what it preloads included.
 */
export async function startWireBytes(baseUrl: string): Promise<WireBytes> {
  const { hostname, port } = new URL(baseUrl);
  const sockets = new Set<Socket>();
  let received = 0;
  const server = createServer((inbound) => {
    const outbound = connect(Number(port), hostname);
    for (const socket of [inbound, outbound]) {
      sockets.add(socket);
      // Browsers and services drop connections that they no longer need.
      socket.on('error', () => undefined);
    }
    outbound.on('data', ({ length }) => (received += length));
    inbound.pipe(outbound).pipe(inbound);
    inbound.on('close', () => outbound.destroy());
    outbound.on('close', () => inbound.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    countReceived: () => received,
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Opens an address on a slow line. @returns when the page painted first, in ms */
export async function measureFirstPaint(page: Page, url: string): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  await session.send('Network.emulateNetworkConditions', SLOW_4G);
  await page.goto(url);
  return page.evaluate<number>(`new Promise((resolve) => {
    const look = () => {
      const [paint] = performance.getEntriesByName('first-contentful-paint');
      if (paint) resolve(paint.startTime);
      else requestAnimationFrame(look);
    };
    look();
  })`);
}

/** Prints a time that bench/notebook.md has, if PAGE_TIMES is set. It depends on the machine, so no test expects it. */
export function printTime(what: string, bytes: number, paintMs: number): void {
  if (process.env['PAGE_TIMES'] === undefined) return;
  console.log(`${what}: ${bytes} bytes, first paint after ${Math.round(paintMs)} ms`);
}
