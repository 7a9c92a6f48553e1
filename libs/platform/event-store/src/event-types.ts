type Named = { name: string; names: Record<string, string> };

/** Every type of stored event that this version knows, from the aggregates that write them. */
export class EventTypes {
  private readonly names = new Map<string, string>();

  /** @throws when two aggregates write events of the same type, which nobody could tell apart */
  constructor(aggregates: Named[]) {
    for (const { name, names } of aggregates) {
      for (const [type, told] of Object.entries(names)) {
        if (this.names.has(type))
          throw new Error(`${name} is not the only one that writes ${type}`);
        this.names.set(type, told);
      }
    }
  }

  /** What the type is called to the outside; undefined when a newer version writes it. */
  nameOf(type: string): string | undefined {
    return this.names.get(type);
  }
}
