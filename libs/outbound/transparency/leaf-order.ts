import { hashLeaf, type Leaf } from './leaf.js';
import { EMPTY, growEdge, hashEdge, type Edge } from './tiles.js';

/** Compares the log, read from its beginning, with the existing tree, to which the leaf numbers of proofs refer. */
export class LeafOrder {
  private edge: Edge = EMPTY;

  /** @param expected the right edge of the tree */
  constructor(private readonly expected: Edge) {}

  /** Adds the next events of the log, except those that the tree does not have yet. */
  add(events: Leaf[]): void {
    const missingCount = this.expected.size - this.edge.size;
    if (missingCount > 0)
      this.edge = growEdge(this.edge, events.slice(0, missingCount).map(hashLeaf)).edge;
  }

  /** Finds how the log differs from the tree. Call it after the last event. */
  findError(): string | undefined {
    const { size } = this.expected;
    if (this.edge.size < size) {
      return `the tree of the checkpoints has ${size} events, and the log only ${this.edge.size}`;
    }
    if (hashEdge(this.edge).equals(hashEdge(this.expected))) return undefined;
    return `the first ${size} events of the log are not those of the tree of the checkpoints`;
  }
}
