import { Injectable } from '@nestjs/common';
import { Counter, Histogram, Registry } from 'prom-client';
import { addGauge } from '#platform/kernel/gauges.js';

const BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Measures requests. Labels are route patterns, never paths, of which there are infinitely many. */
@Injectable()
export class HttpMetrics {
  readonly seconds: Histogram<'method' | 'route' | 'status'>;
  inFlightCount = 0;
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
    addGauge(
      registry,
      { name: 'inkpad_http_requests_in_flight', help: 'Requests in flight' },
      (gauge) => gauge.set(this.inFlightCount),
    );
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

  countRateLimited(scope: string): void {
    this.limited.inc({ by: scope });
  }

  countReplay(): void {
    this.replays.inc();
  }
}
