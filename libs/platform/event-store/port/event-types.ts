import { getCurrentVersion, type EventShapes } from './codec.js';

/** The part of an aggregate that needs no state. */
type AggregateNames = EventShapes & {
  name: string;
  // With a method, because each aggregate takes only events of its own.
  events: Record<
    string,
    { name: string; publishedAs: string | null; balance?(data: object): number }
  >;
};

type Typed = { id: string; type: string; version: number };

/** Reports an event that a newer version wrote: only that version knows what follows from it. */
export class UnknownEventTypeError extends Error {
  /** @param effect what does not happen while no process knows the event */
  constructor({ id, type, version }: Typed, isKnown: boolean, effect: string) {
    const unknown = isKnown ? `version ${version} of the type` : 'the type';
    super(
      `this version does not know ${unknown} ${type} of event ${id}; ${effect} until the dispatcher is upgraded`,
    );
  }
}

/** Lists every type of stored event that this version knows, from the aggregates that write them. */
export class EventTypes {
  private readonly aggregates = new Map<string, AggregateNames>();
  private readonly withBalance = new Set<AggregateNames>();

  /** @throws when two aggregates write events of the same type, because nothing could tell those apart */
  constructor(aggregates: AggregateNames[]) {
    for (const aggregate of aggregates) {
      if (Object.values(aggregate.events).some(({ balance }) => balance)) {
        this.withBalance.add(aggregate);
      }
      for (const type of Object.keys(aggregate.events)) {
        if (this.aggregates.has(type)) {
          throw new Error(`${aggregate.name} is not the only one that writes ${type}`);
        }
        this.aggregates.set(type, aggregate);
      }
    }
  }

  /** Finds the aggregate that writes the type; undefined when only a newer version writes it. */
  findAggregate(type: string): AggregateNames | undefined {
    return this.aggregates.get(type);
  }

  /** Tells whether records of the aggregate have a balance. */
  hasBalance(aggregate: AggregateNames): boolean {
    return this.withBalance.has(aggregate);
  }

  /** Finds the public name of the type; undefined when only a newer version writes it. */
  findPublicName(type: string): string | undefined {
    return this.aggregates.get(type)?.events[type]?.name;
  }

  /** Finds the type under which receivers get events of this type; undefined when they do not. */
  findPublishedType(type: string): string | undefined {
    return this.aggregates.get(type)?.events[type]?.publishedAs ?? undefined;
  }

  /**
   * Checks that this version can read all events.
   * @throws UnknownEventTypeError
   */
  assertKnown(events: Typed[], effect: string): void {
    const unknown = events.find((event) => !this.knows(event));
    if (unknown)
      throw new UnknownEventTypeError(unknown, this.aggregates.has(unknown.type), effect);
  }

  /** Tells whether this version can read the event: a newer one may have written it in another shape. */
  knows({ type, version }: { type: string; version: number }): boolean {
    const aggregate = this.aggregates.get(type);
    return aggregate !== undefined && version <= getCurrentVersion(aggregate, type);
  }
}
