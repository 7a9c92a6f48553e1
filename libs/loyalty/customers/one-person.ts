import type { Customer } from './customer.js';

/** Loads all customers who were merged into one person: the survivor first, then the others. */
export async function loadPerson(
  id: number,
  load: (id: number) => Promise<Customer>,
): Promise<Customer[]> {
  let root = await load(id);
  while (root.mergedInto) root = await load(root.mergedInto.customerId);
  const all = [root];
  // The loop appends to the list that it iterates over.
  for (const { merges = [] } of all) {
    for (const { customerId } of merges) all.push(await load(customerId));
  }
  return all;
}
