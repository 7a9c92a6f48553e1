import { Injectable } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { getRoutePattern } from './path.js';

const BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Measures requests. Labels are route patterns, never paths, of which there are infinitely many. */
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
      help: 'Time until the response was sent; status none: the connection closed without one',
      labelNames: ['method', 'route', 'status'],
      buckets: BUCKETS,
      registers,
    });
    this.inFlight = new Gauge({
      name: 'inkpad_http_requests_in_flight',
      help: 'Requests in flight',
      registers,
    });
    this.limited = new Counter({
      name: 'inkpad_http_rate_limited_total',
      help: 'Requests refused with 429, by what was counted',
      labelNames: ['by'],
      registers,
    });
    this.replays = new Counter({
      name: 'inkpad_idempotent_replays_total',
      help: 'Requests that got the response stored under their Idempotency-Key',
      registers,
    });
  }

  /** Measures all requests. Call it before other hooks are added, so that their rejections are counted too. */
  watch(server: FastifyInstance): void {
    server.addHook('onRequest', (request, reply, done) => {
      const { inFlight, seconds } = this;
      const { method } = request;
      const route = getRoutePattern(request);
      const startedAt = performance.now();
      inFlight.inc();
      // Emitted exactly once, also when the connection broke; Fastify's onResponse may then never run.
      reply.raw.once('close', () => {
        inFlight.dec();
        const status = reply.raw.writableFinished
          ? `${Math.floor(reply.statusCode / 100)}xx`
          : 'none';
        seconds.observe({ method, route, status }, (performance.now() - startedAt) / 1000);
      });
      done();
    });
  }

  countRateLimited(scope: string): void {
    this.limited.inc({ by: scope });
  }

  countReplay(): void {
    this.replays.inc();
  }
}
