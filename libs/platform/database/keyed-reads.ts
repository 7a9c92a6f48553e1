import { Batcher } from './batcher.js';

const BATCHES_AT_ONCE = 2;
const BATCH_SIZE = 100;

/** Reads by key, with one statement for all who ask at the moment. Nobody gets what was read before they asked. */
export class KeyedReads<K, V> {
  private readonly batcher: Batcher<K, V | undefined>;

  /** @param readAll returns what there is, by key */
  constructor(readAll: (keys: K[]) => Promise<Map<K, V>>) {
    this.batcher = new Batcher(BATCHES_AT_ONCE, BATCH_SIZE, async (keys) => {
      const values = await readAll([...new Set(keys)]);
      return keys.map((key) => ({ status: 'fulfilled', value: values.get(key) }));
    });
  }

  find(key: K): Promise<V | undefined> {
    return this.batcher.add(key);
  }
}
