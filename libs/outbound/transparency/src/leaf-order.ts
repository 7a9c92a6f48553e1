import { leafOf, type Leaf } from './leaf.js';
import { EMPTY, grown, rootOfEdge, type Edge } from './tiles.js';

/** Compares the log, read from its beginning, with a tree that has been made of it: the numbers of a proof are its. */
export class LeafOrder {
  private made: Edge = EMPTY;

  /** @param expected the right edge of the tree */
  constructor(private readonly expected: Edge) {}

  /** The next events of the log; those that the tree does not have yet are passed over. */
  add(events: Leaf[]): void {
    const left = this.expected.size - this.made.size;
    if (left > 0) this.made = grown(this.made, events.slice(0, left).map(leafOf)).edge;
  }

  /** After the last event: how the log differs from the tree. */
  fault(): string | undefined {
    const { size } = this.expected;
    if (this.made.size < size) {
      return `the tree of the checkpoints has ${size} events, and the log only ${this.made.size}`;
    }
    if (rootOfEdge(this.made).equals(rootOfEdge(this.expected))) return undefined;
    return `the first ${size} events of the log are not those of the tree of the checkpoints`;
  }
}
