import { Inject, Injectable } from '@nestjs/common';
import type { StoredEvent } from '#event-store/event-store.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { found, type EventRenderer, type Rendered } from './event-renderer.js';

/** Injection token: the renderers of all aggregates with public events. */
export const RENDERERS = Symbol('event renderers');

/** Renders public events as receivers see them, with a handful of queries per batch, however large it is. */
@Injectable()
export class PublicEventsService {
  constructor(
    private readonly keys: PersonalKeys,
    @Inject(RENDERERS) private readonly renderers: EventRenderer[],
  ) {}

  /** @param events all with a public type, in the order of the log */
  async render(events: StoredEvent[]): Promise<Rendered[]> {
    const opened = await this.keys.opened(events);
    const rendered = new Map<string, Rendered>();
    for (const renderer of this.renderers) {
      const own = opened.filter(({ stream }) => stream.startsWith(`${renderer.aggregate}-`));
      if (own.length === 0) continue;
      for (const [id, one] of await renderer.render(own)) rendered.set(id, one);
    }
    return events.map(({ id }) => found(rendered.get(id), `a rendering of event ${id}`));
  }
}
