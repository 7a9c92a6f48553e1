import { Injectable } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { EventStore } from '../port/event-store.js';

/** Counts the streams that others have damaged on a shared server. */
@Injectable()
export class DamageMetrics {
  constructor(eventStore: EventStore, registry: Registry) {
    registry.registerMetric(
      new Gauge({
        name: 'inkpad_damaged_streams',
        help: 'Streams with names like ours in which this process has read events of others (foreign) or settings that hide our events (trimmed)',
        labelNames: ['damage'],
        registers: [],
        collect() {
          const { foreignStreams, trimmedStreams } = eventStore.countDamage();
          this.set({ damage: 'foreign' }, foreignStreams);
          this.set({ damage: 'trimmed' }, trimmedStreams);
        },
      }),
    );
  }
}
