/** Larger ids are not kept: 2 ** 31 take 256 MiB. */
const MAX_ID = 2 ** 31;

/** A set of ids that were given out one after the other: one bit for each up to the largest. */
export class IdSet {
  private bits = new Uint8Array(1024);

  add(id: number): void {
    if (id >= MAX_ID) return;
    const index = id >>> 3;
    if (index >= this.bits.length) {
      const bits = new Uint8Array(Math.max(index + 1, 2 * this.bits.length));
      bits.set(this.bits);
      this.bits = bits;
    }
    this.bits[index] = (this.bits[index] ?? 0) | (1 << (id & 7));
  }

  has(id: number): boolean {
    return id < MAX_ID && ((this.bits[id >>> 3] ?? 0) & (1 << (id & 7))) !== 0;
  }
}
