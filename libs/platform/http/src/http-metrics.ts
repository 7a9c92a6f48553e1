import { Injectable } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { patternOf } from './path.js';

const BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Requests as callers see them. Labels are patterns of routes, never paths: those have no end. */
@Injectable()
export class HttpMetrics {
  private readonly seconds: Histogram<'method' | 'route' | 'status'>;
  private readonly inFlight: Gauge;
  private readonly limited: Counter<'by'>;
  private readonly replays: Counter;

  constructor(registry: Registry) {
    const registers = [registry];
    this.seconds = new Histogram({
      name: 'inkpad_http_request_seconds',
      help: 'Time until the answer was sent; status none: the connection ended without one',
      labelNames: ['method', 'route', 'status'],
      buckets: BUCKETS,
      registers,
    });
    this.inFlight = new Gauge({
      name: 'inkpad_http_requests_in_flight',
      help: 'Requests that wait for their answer',
      registers,
    });
    this.limited = new Counter({
      name: 'inkpad_http_rate_limited_total',
      help: 'Requests refused with 429, by what they are counted by',
      labelNames: ['by'],
      registers,
    });
    this.replays = new Counter({
      name: 'inkpad_idempotent_replays_total',
      help: 'Requests answered with what is kept under their Idempotency-Key',
      registers,
    });
  }

  /** Before all other hooks, so that what they refuse is counted too. */
  watch(server: FastifyInstance): void {
    server.addHook('onRequest', async (request, reply) => {
      const { inFlight, seconds } = this;
      const { method } = request;
      const route = patternOf(request);
      const begun = performance.now();
      inFlight.inc();
      // Comes once, also when the connection broke: what the library calls the response may never come.
      reply.raw.once('close', () => {
        inFlight.dec();
        const status = reply.raw.writableFinished
          ? `${Math.floor(reply.statusCode / 100)}xx`
          : 'none';
        seconds.observe({ method, route, status }, (performance.now() - begun) / 1000);
      });
    });
  }

  limitedBy(what: 'token' | 'address' | 'page_address'): void {
    this.limited.inc({ by: what });
  }

  replayed(): void {
    this.replays.inc();
  }
}
