import { Injectable } from '@nestjs/common';
import { Registry } from 'prom-client';
import { addGauge } from '#platform/kernel/gauges.js';
import { EventStore } from '../port/event-store.js';

/** Counts the streams that others have damaged on a shared server. */
@Injectable()
export class DamageMetrics {
  constructor(eventStore: EventStore, registry: Registry) {
    addGauge(
      registry,
      {
        name: 'inkpad_damaged_streams',
        help: 'Streams with names like ours in which this process has read events of others (foreign) or settings that hide our events (trimmed)',
        labelNames: ['damage'],
      },
      (gauge) => {
        const { foreignStreams, trimmedStreams } = eventStore.countDamage();
        gauge.set({ damage: 'foreign' }, foreignStreams);
        gauge.set({ damage: 'trimmed' }, trimmedStreams);
      },
    );
  }
}
